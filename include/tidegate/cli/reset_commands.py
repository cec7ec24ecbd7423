"""Commands that begin a pipeline again, or end it; each says with numbers what it will do."""

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import wording
from tidegate.cli.arguments import AsJson, PipelineName, TakeOver, Yes, utc_now
from tidegate.cli.loading import finish, run_for, told
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import NOTHING, reporting
from tidegate.errors.commands import command

if TYPE_CHECKING:
    from tidegate.pipeline import Pipeline
    from tidegate.pipeline.upkeep.resetting import Standing

_IN_PLACE = (
    "Another pipeline of this target publishes to one of these partitions only after its files "
    "were moved away, because it does not know their rows."
)


def reset(
    pipeline: PipelineName,
    drop_target: Annotated[
        bool,
        typer.Option(
            "--drop-target",
            help=(
                "Delete what was published and staged, and register the pipeline as its file says "
                "now: source, target and partitioning may be others."
            ),
        ),
    ] = False,
    yes: Yes = False,
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Begin again at `source.start`; window numbers go on.

    The source is read at once, as a load would; `tidegate publish` comes next. What is published
    stays until the next revision of each partition replaces it. A partition for which the source
    has no rows any more becomes empty.

    With `--drop-target` nothing is read; `tidegate load` comes next.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline, take_over=take_over)
        standing = opened.standing()
        if standing is None:
            output.show({"standing": None}, "Nothing was loaded yet, so there is nothing to reset.")
            raise typer.Exit(NOTHING)
        if drop_target:
            output.confirm("Delete this?", *_dropping(opened, standing), yes=yes)
            opened.drop(this_process(), now)
            text = f"Deleted {_published(standing)}. The next load begins at `source.start`."
            output.show({"dropped": standing.to_json()}, text, *_as_one_window(opened))
            output.next(command("load", pipeline))
            return
        output.confirm("Read the source again?", *_replacing(opened, standing), yes=yes)
        run = run_for(opened, now, None, None)
        planned = opened.reset(run, now)
        if not planned:
            empty = "The source has nothing to read, so everything stays as it is."
            output.show({"planned": []}, empty)
            output.next(command("reset", pipeline, "--drop-target"))
            raise typer.Exit(NOTHING)
        said = told(opened, *finish(opened, run, planned, now, output))
        output.show(said.raw, said.facts)
        output.next(command("publish", pipeline))


def retire(pipeline: PipelineName, yes: Yes = False, as_json: AsJson = False) -> None:
    """End a pipeline: what it published stays, and another one may publish to the same target.

    The pipeline file gets the ending `.retired`, so that its DAGs vanish. Rows that are not
    published are dropped.
    """
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline)
        file, has_ended = Path(opened.config.file), opened.has_ended()
        standing = None if has_ended else opened.standing()
        output.confirm("Retire it?", *_retiring(standing, file), yes=yes)
        if has_ended or standing is not None:
            opened.retire(getpass.getuser(), this_process(), utc_now())
        left = _put_aside(file)
        raw = {"left": standing and standing.to_json(), "file": str(left)}
        output.show(raw, *_retired(opened.config.name, standing, file, left))


def _put_aside(file: Path) -> Path | None:
    """Rename a pipeline file so that it is not found any more; None if that is not allowed."""
    from tidegate.config import RETIRED

    aside = file.with_name(f"{file.name}{RETIRED}")
    try:
        return file.rename(aside)
    except OSError:
        return None


def _retiring(standing: "Standing | None", file: Path) -> Iterator[str]:
    if standing is not None:
        pending = wording.plural(standing.pending, "partition")
        yield f"{_published(standing)} stay as they are. {_IN_PLACE}"
        yield (
            f"{pending} with rows that are not published lose them, with what is staged in "
            f"{standing.work}."
        )
    yield f"{file} gets the ending `.retired`."


def _retired(
    name: str, standing: "Standing | None", file: Path, left: Path | None
) -> Iterator[str]:
    yield f"Pipeline '{name}' is retired."
    if standing is not None:
        lost = wording.plural(standing.pending, "partition")
        yield f"{_published(standing)} stay; {lost} had rows that were not published."
        yield _IN_PLACE
    if left is None:
        yield f"{file} could not be renamed: remove it from where it is deployed."
    else:
        yield f"Its file is {left} now."
    yield (
        f"In Airflow, mark open runs of {name}_load, {name}_publish and {name}_reconcile as "
        "failed: their tasks find no DAG any more, and an answer to a question of theirs does "
        "nothing."
    )


def _published(standing: "Standing") -> str:
    """Return what is published, with numbers."""
    return (
        f"{wording.plural(standing.partitions, 'partition')} with "
        f"{wording.plural(standing.rows, 'row')} ({wording.plural(standing.files, 'file')}, "
        f"{wording.size(standing.bytes)}) in {standing.target}"
    )


def _dropping(opened: "Pipeline", standing: "Standing") -> tuple[str, ...]:
    pending = wording.plural(standing.pending, "partition")
    have = "has" if standing.pending == 1 else "have"
    return (
        f"This deletes {_published(standing)}, and what is staged in {standing.work}: {pending} "
        f"{have} rows that are not published.",
        "Files that Tidegate did not write stay.",
        *_as_one_window(opened),
    )


def _as_one_window(opened: "Pipeline") -> Iterator[str]:
    """Yield what a target that is overwritten has after the source was read in one piece."""
    if opened.config.target.write == "overwrite":
        steps = command("load", opened.config.name, "--until")
        yield (
            "What the source has since `source.start` is read as one window, so that with "
            "`target.write: overwrite` a partition then has all of its rows, not those of the last "
            "window that brought any. If only these are wanted, let `source.start` leave out the "
            f"others, or delete what was published and load step by step with `{steps} TIME`."
        )


def _replacing(opened: "Pipeline", standing: "Standing") -> tuple[str, ...]:
    start = opened.config.source.start
    since = start.kind if start.value is None else f"{start.kind} {start.value}"
    return (
        f"Published: {_published(standing)}.",
        f"The source is read again from `source.start: {since}`. Each partition stays as it is "
        "until its next revision replaces it; one without rows in the source becomes empty.",
        *_as_one_window(opened),
    )
