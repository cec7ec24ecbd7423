"""Commands of upkeep: fsck, gc."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tidegate.cli import findings_view, wording
from tidegate.cli.arguments import AsJson, PipelineName, utc_now
from tidegate.cli.opening import open_pipeline
from tidegate.cli.output import FAILED, NOTHING, Output, reporting
from tidegate.errors.commands import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.pipeline import Pipeline
    from tidegate.pipeline.upkeep.sweeping import Garbage

_LISTED = 20


def fsck(
    pipeline: PipelineName,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Restore a lost ledger from work directory and markers."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Compare lengths of published files, and not their bytes."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare table, markers and ledger, and repair nothing. Ends with 1 if they disagree."""
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline)
        if rebuild:
            _rebuild(opened, output)
            return
        findings = []
        with output.progress() as progress:
            task = progress.add_task("comparing files, markers and ledger")
            for finding in opened.inspect(reads_content=not quick):
                findings.append(finding)
                progress.update(task, description=f"found {len(findings)}")
            # With findings, it is not known what is needed.
            garbage = () if findings else opened.garbage(utc_now(), opened.config.retention.age)
        told = [findings_view.told(finding) for finding in findings]
        raw = {
            "findings": [finding.text for finding in findings],
            "details": [findings_view.raw(finding) for finding in findings],
            "garbage": {"files": len(garbage), "bytes": sum(item.bytes for item in garbage)},
        }
        output.show(raw, *(told or ["Table, markers and ledger agree."]))
        if garbage and not as_json:
            output.show(None, f"Nobody needs {_files(garbage)} any more.")
            output.next(command("gc", pipeline))
        raise typer.Exit(FAILED if findings else 0)


def gc(
    pipeline: PipelineName,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            "--min-age",
            metavar="DURATION",
            help=(
                "Keep files that are younger, such as 12h or 30d; by default those that "
                "`retention.age` in the pipeline file keeps, 7d."
            ),
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the files; by default they are only listed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find files that are no longer needed: retired parts, lost attempts, former directories.

    The newest revisions keep their files, as many as `retention.revisions` says.
    """
    from tidegate.config.words import parse_duration

    with reporting(pipeline, as_json=as_json) as output:
        try:
            age = None if older_than is None else parse_duration(older_than)
        except ValueError as broken:
            raise typer.BadParameter(str(broken), param_hint="--older-than") from broken
        opened = open_pipeline(pipeline)
        kept_for = opened.config.retention.age if age is None else age
        with output.progress() as progress:
            task = progress.add_task("looking for files that nobody needs")
            garbage = opened.garbage(utc_now(), kept_for)
            if delete:
                progress.update(task, description=f"deleting {_files(garbage)}")
                garbage = opened.sweep(garbage)
        raw = {
            "deleted": delete,
            "files": [{"path": item.path, "reason": item.reason} for item in garbage],
        }
        if not garbage:
            output.show(raw, "Nothing to delete.")
            raise typer.Exit(NOTHING)
        output.show(raw, garbage_table(garbage), _total(garbage, delete=delete))
        if not delete:
            said = [] if older_than is None else ["--older-than", older_than]
            output.next(command("gc", pipeline, *said, "--delete"))


def garbage_table(garbage: "Sequence[Garbage]") -> Table:
    """List the first files that may be deleted."""
    table = Table("file", "size", "why")
    for item in garbage[:_LISTED]:
        table.add_row(item.path, wording.size(item.bytes), item.reason)
    rest = len(garbage) - _LISTED
    if rest > 0:
        table.add_row(f"… and {wording.plural(rest, 'more file')}", "", "")
    return table


def _total(garbage: "Sequence[Garbage]", *, delete: bool) -> str:
    return f"{'Deleted' if delete else 'Would delete'} {_files(garbage)}."


def _files(garbage: "Sequence[Garbage]") -> str:
    size = wording.size(sum(item.bytes for item in garbage))
    return f"{wording.plural(len(garbage), 'file')} with {size}"


def _rebuild(opened: "Pipeline", output: Output) -> None:
    restored = opened.restore_ledger()
    raw = {
        "windows": restored.windows,
        "revisions": restored.revisions,
        "unfinished": list(restored.unfinished),
        "undecided": list(restored.undecided),
        "taken_back": [
            {
                "partition": str(item.partition),
                "revision": item.revision,
                "did": "erase" if item.restored is None else "undo",
            }
            for item in restored.taken_back
        ],
    }
    text = (
        f"Restored {wording.plural(restored.windows, 'window')} and "
        f"{wording.plural(restored.revisions, 'revision')}."
    )
    lost = [
        f"{partition}: the decision on it is in no file of the work directory, and has to be made "
        "again."
        for partition in restored.undecided
    ]
    lost += [
        f"{item.partition}: what stands is older than revision {item.revision}, which "
        + (
            "took erased rows out: they may be published again."
            if item.restored is None
            else f"went back to revision {item.restored}: what was undone is published again."
        )
        for item in restored.taken_back
    ]
    output.show(raw, text, *lost)
    for partition in restored.unfinished:
        output.next(command("publish", opened.config.name, partition))
    for partition in restored.undecided:
        output.next(command("explain", opened.config.name, partition))
    if any(item.restored is None for item in restored.taken_back):
        output.next(command("erase", opened.config.name, "--again"))
    for item in restored.taken_back:
        if item.restored is not None:
            output.next(command("undo", opened.config.name, item.partition))
