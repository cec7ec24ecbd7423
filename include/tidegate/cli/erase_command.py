"""The command that erases rows for good."""

import getpass
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tidegate.cli import wording
from tidegate.cli.arguments import AsJson, Comment, PipelineName, Yes, utc_now
from tidegate.cli.loading import run_for
from tidegate.cli.opening import open_pipeline
from tidegate.cli.output import FAILED, Output, reporting
from tidegate.errors.commands import command, naming
from tidegate.model.erasure import Erasure, ErasureReport
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
    comment: Comment = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase rows for good: from what is published, staged and kept, and from all loads to come.

    The values are kept as fingerprints only. Earlier revisions with such rows can no longer be
    brought back. Ends with 1 if rows are left somewhere; the report says where, and why.
    """
    if (where is None) != again:
        problem = "give one of --where and --again"
        raise typer.BadParameter(problem, param_hint="--where")
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline)
        erasure = None
        if where is not None:
            erasure = opened.erasure(where, getpass.getuser(), now, comment)
            output.confirm("Erase them for good?", *_doing(opened, erasure), yes=yes)
        report = _erase(opened, erasure, now, comment, output)
        output.show(_raw(report), *_done(pipeline, report))
        if report.left:
            output.next(command("erase", pipeline, "--again"))
            raise typer.Exit(FAILED)
        output.next(command("publish", pipeline))


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
    found = opened.to_erase(erasure)
    rows = sum(file.rows for file in found if file.partition is not None)
    partitions = sorted({file.partition for file in found if file.partition is not None})
    where = f" of {wording.listed(partitions)}" if partitions else ""
    yield (
        f"{wording.plural(rows, 'row')} of {wording.plural(len(partitions), 'partition')} are "
        f"published{where}. {wording.plural(len(found) - _published(found), 'staged file')} have "
        "such rows."
    )
    yield (
        "They leave these files, everything that is kept of earlier revisions, and quarantine. No "
        "load, replay or rebuild brings them back. This cannot be undone."
    )


def _published(files: Sequence[Any]) -> int:
    return sum(file.partition is not None for file in files)


def _raw(report: ErasureReport) -> dict[str, Any]:
    return {"rows": report.rows, **report.to_json()}


def _done(pipeline: str, report: ErasureReport) -> Iterator[Any]:
    table = Table("file", "rows", "what was done")
    for file in report.files:
        table.add_row(file.path, wording.count(file.rows), file.done)
    if report.files:
        yield table
    yield (
        f"{wording.plural(report.rows, 'published row')} erased; "
        f"{wording.plural(len(report.files), 'file')} had such rows."
    )
    for file in report.left:
        yield f"Left: {file.path}: {naming(file.done, pipeline, file.partition)}"
