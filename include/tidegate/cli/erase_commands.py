"""The command that erases rows for good."""

import getpass
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidegate.cli import wording
from tidegate.cli.arguments import AsJson, Comment, PipelineName, Yes, utc_now
from tidegate.cli.loading import run_for
from tidegate.cli.opening import open_pipeline
from tidegate.cli.output import FAILED, NOTHING, Output, reporting
from tidegate.errors.commands import command, naming
from tidegate.model.erasure import Erasure, ErasureLook, ErasureReport
from tidegate.model.publication import Approval

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.pipeline import Pipeline


def erase(
    pipeline: PipelineName,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help='The rows, by values of published columns: "customer_id in (17, 18)".',
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Go through all that was to be erased so far once more.")
    ] = False,
    instead: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NUMBER",
            help="An earlier erasure whose columns later windows need not have any more.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what has such rows; write nothing down.")
    ] = False,
    comment: Comment = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase rows for good: from what is published, staged and kept, and from all loads to come.

    The values are kept as fingerprints only. Earlier revisions with such rows can no longer be
    brought back. Ends with 1 if rows are left somewhere; the report says where, and why.
    """
    if again == (where is not None or bool(instead)):
        problem = "give one of --where and --again"
        raise typer.BadParameter(problem, param_hint="--where")
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline)
        erasure = None
        if not again:
            erasure = opened.erasure(where, getpass.getuser(), now, comment, instead or ())
            if dry_run:
                _show_only(opened, erasure, output)
                return
            output.confirm("Erase them for good?", *_doing(opened, erasure), yes=yes)
        report = _erase(opened, erasure, now, comment, output)
        output.show(
            _raw(report), *_done(pipeline, report), *_lacking(opened, erasure), *_named(opened)
        )
        first = [command("publish", pipeline)] if opened.unpublished() else []
        if report.left:
            output.next(*first, command("erase", pipeline, "--again"))
            raise typer.Exit(FAILED)
        output.next(*first)


def _show_only(opened: "Pipeline", erasure: Erasure, output: Output) -> None:
    found = opened.to_erase(erasure)
    output.show(found.to_json(), *_facts(found, opened.config.name), *_lacking(opened, erasure))
    if found.unread:
        raise typer.Exit(FAILED)
    if not found.files:
        raise typer.Exit(NOTHING)


def _erase(
    opened: "Pipeline", erasure: Erasure | None, now: "datetime", comment: str, output: Output
) -> ErasureReport:
    from tidegate.pipeline.executors import executors_for

    said = Approval(True, getpass.getuser(), now, comment or "rows were erased")
    run = run_for(opened, now, None, None)
    with output.progress() as progress:
        task = progress.add_task("erasing", total=None)
        return opened.erase(
            erasure,
            run,
            said,
            executors_for(opened.config),
            lambda text: progress.update(task, description=text),
        )


def _doing(opened: "Pipeline", erasure: Erasure) -> Iterator[str]:
    yield from _facts(opened.to_erase(erasure), opened.config.name)
    yield (
        "They leave these files, everything that is kept of earlier revisions, and quarantine. No "
        "load, replay or rebuild brings them back. This cannot be undone."
    )
    yield from _named(opened)


def _named(opened: "Pipeline") -> Iterator[str]:
    """Say what an erasure does not reach: older states of a table name what was published."""
    target = opened.config.target
    if target.is_of_kind.keeps_removed:
        yield (
            f"Older snapshots of {target.table} keep the files as they were published; the rows "
            "are gone once these snapshots are expired and files that none names are removed, by "
            "the table's own maintenance."
        )


def _facts(found: ErasureLook, pipeline: str) -> Iterator[str]:
    published = [file for file in found.files if file.is_published]
    rows = sum(file.rows for file in published)
    partitions = sorted({str(file.partition) for file in published})
    where = f" of {wording.listed(partitions)}" if partitions else ""
    yield (
        f"{wording.plural(rows, 'published row')}{where}, and "
        f"{wording.plural(len(found.files) - len(published), 'staged file')} with such rows."
    )
    for file in found.unread:
        yield f"Not looked through: {file.path}: {naming(file.done, pipeline, file.partition)}"


def _raw(report: ErasureReport) -> dict[str, Any]:
    return {"rows": report.rows, **report.to_json()}


def _done(pipeline: str, report: ErasureReport) -> Iterator[Any]:
    table = Table("rows", "what was done")
    table.add_column("file", overflow="fold")
    for file in report.files:
        table.add_row(wording.count(file.rows), file.done, file.path)
    if report.files:
        yield table
    yield (
        f"{wording.plural(report.rows, 'published row')} erased; "
        f"{wording.plural(len(report.files), 'file')} had such rows."
    )
    for file in report.left:
        yield f"Left: {file.path}: {naming(file.done, pipeline, file.partition)}"


def _lacking(opened: "Pipeline", erasure: Erasure | None) -> Iterator[str]:
    """Say which files do not tell such rows: they may have them all the same."""
    found = opened.lacking(erasure) if erasure is not None else {}
    if erasure is not None and found:
        named = " or ".join(f"'{name}'" for name in erasure.columns)
        yield (
            f"{wording.plural(sum(found.values()), 'file')}, published or waiting for it, of "
            f"{wording.listed(sorted(found))} "
            f"{'has' if sum(found.values()) == 1 else 'have'} no column {named}, or values of "
            "another kind in it, so that rows of them may be left. If it had another name then, "
            "erase by that name, too."
        )
