"""Commands that change nothing: status, explain, instants, changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import status_view
from tidegate.cli.arguments import AsJson, PartitionText, PipelineName, complete_name, utc_now
from tidegate.cli.changes_view import instant_table, row_table
from tidegate.cli.decision_commands import decision_commands
from tidegate.cli.explain_view import checkpoint_facts, explanation
from tidegate.cli.opening import (
    open_control,
    open_pipeline,
    pipeline_names,
    read_all_pipelines,
)
from tidegate.cli.output import NOTHING, reporting
from tidegate.errors.commands import command
from tidegate.model.held_branch import held_branch

if TYPE_CHECKING:
    import pyarrow as pa

_BOUND = "An instant of the source, a date or time, `earliest` or `latest`."


def status(
    pipeline: Annotated[
        str | None,
        typer.Argument(
            metavar="[PIPELINE]",
            help="Name of a pipeline, or its file; by default all pipelines.",
            autocompletion=complete_name,
        ),
    ] = None,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Show how many files each published partition has, and how small."
        ),
    ] = False,
    small_file: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="With --files: a smaller file is a small one; by default as `target.compaction` "
            "says, 16MiB.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show checkpoint, watermark and every partition: committed, pending, held, late, changed.

    Late: published, and rows came since. Changed: published, and what it has was replayed or
    rebuilt since. With the reason for each that is not committed.

    Without a pipeline: one line for each, from the ledger alone.
    """
    if pipeline is None:
        if files:
            problem = "needs the name of a pipeline"
            raise typer.BadParameter(problem, param_hint="--files")
        _all_pipelines(as_json=as_json)
        return
    if files:
        _files(pipeline, small_file, as_json=as_json)
        return
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_control(pipeline)
        report = opened.status(utc_now())
        if report is None:
            output.show({"pipeline": None}, f"{opened.config.name} was never loaded.")
            output.next(command("load", pipeline))
            raise typer.Exit(NOTHING)
        facts = status_view.pipeline_facts(report, opened.config.timezone)
        raw = status_view.raw_report(report)
        output.show(raw, facts, status_view.partition_table(report.partitions))


def _files(pipeline: str, small_file: str | None, *, as_json: bool) -> None:
    from tidegate.config.words import parse_size

    with reporting(pipeline, as_json=as_json) as output:
        try:
            small_below = None if small_file is None else parse_size(small_file)
        except ValueError as broken:
            raise typer.BadParameter(str(broken), param_hint="--small-file") from broken
        opened = open_control(pipeline)
        sizes = opened.file_sizes(small_below)
        raw = {
            "partitions": [{**item.to_json(), "partition": str(item.partition)} for item in sizes],
        }
        if not sizes:
            output.show(raw, "No partition is published yet.")
            raise typer.Exit(NOTHING)
        output.show(raw, status_view.file_table(sizes), status_view.file_total(sizes))
        if any(item.files_after < item.files for item in sizes):
            said = [] if small_file is None else ["--small-file", small_file]
            output.next(command("compact", pipeline, *said))


def _all_pipelines(*, as_json: bool) -> None:
    with reporting(None, as_json=as_json) as output:
        overview = read_all_pipelines()
        known = {item.pipeline.name for item in overview}
        waiting = sorted(pipeline_names() - known)
        raw = {"pipelines": [item.to_json() for item in overview], "never_loaded": waiting}
        if not overview and not waiting:
            output.show(raw, "There are no pipelines yet.")
            output.next("tidegate init --from TABLE")
            raise typer.Exit(NOTHING)
        output.show(raw, status_view.overview_table(overview, waiting))


def explain(pipeline: PipelineName, partition: PartitionText, as_json: AsJson = False) -> None:
    """Explain why a partition is or is not published, with its source commits, files and checks."""
    from tidegate.pipeline.publish.evaluating import ONLY_BY_COMMAND

    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline)
        found = opened.explain(opened.parse_partition(partition), utc_now())
        checkpoint = opened.checkpoint_state(utc_now())
        raw = {
            "partition": str(found.report.state.partition),
            **found.to_json(),
            "checkpoint": checkpoint and checkpoint.to_json(),
        }
        target, said = opened.config.target, []
        if found.report.name == "held" and target.is_of_kind.shown_by is not None:
            raw["branch"] = held_branch(found.report.state.partition)
            said = [f"It can be read on the branch '{raw['branch']}' of {target.table}."]
        output.show(raw, explanation(found, checkpoint, opened.config.timezone), *said)
        if found.report.passed_over:
            output.next(command("rebuild", pipeline, found.report.state.partition))
        digest = found.report.proposed_digest
        if found.report.name == "held" and digest is not None:
            decided = found.proposed.approval if found.proposed else None
            named = (pipeline, found.report.state.partition)
            output.next(*decision_commands(*named, digest, decided))
        if found.evaluation is not None and found.evaluation.reason in ONLY_BY_COMMAND:
            output.next(command("publish", pipeline, found.report.state.partition))
        if found.report.rows_aside:
            output.next(command("reopen", pipeline, found.report.state.partition))


def instants(pipeline: PipelineName, as_json: AsJson = False) -> None:
    """List the source's commits: what each one changed, and which window took it in."""
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline)
        entries = opened.instants(utc_now())
        checkpoint = opened.checkpoint_state(utc_now())
        raw = {
            "instants": [{**entry.report.to_json(), "window": entry.window} for entry in entries],
            "checkpoint": checkpoint and checkpoint.to_json(),
        }
        table = instant_table(entries, opened.config.timezone)
        shown = [checkpoint_facts(checkpoint)] if checkpoint else []
        output.show(raw, table if entries else "The source has no commits yet.", *shown)


def changes(
    pipeline: PipelineName,
    start: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help=f"Excluded. {_BOUND}")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="INSTANT", help=f"Included. {_BOUND}")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help=(
                "A read mode of the source's kind, as `snapshot`, `changelog` or `complete`; by "
                "default the mode of the pipeline."
            )
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Print this many rows.")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="Write all rows into this Parquet file instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the rows that changed in the source, without running the pipeline."""
    from tidegate.config import find_pipeline, load_pipeline
    from tidegate.pipeline.changes import pipeline_changes

    with reporting(pipeline, as_json=as_json) as output:
        config = load_pipeline(find_pipeline(pipeline))
        # One row more than is shown is read, to find out whether there are more.
        most = None if out is not None else limit + 1
        reader = pipeline_changes(
            config, start_exclusive=start, end_inclusive=end, mode=mode, limit=most
        )
        if out is not None:
            rows = write_parquet(reader, out)
            output.show({"file": str(out), "rows": rows}, f"Wrote {rows:,} rows to {out}.")
            return
        names = reader.schema.names
        found = list(_rows(reader))
        raw = {"columns": names, "rows": found[:limit], "more": len(found) > limit}
        more = "… and more; --limit N or --out FILE shows them." if len(found) > limit else ""
        output.show(raw, row_table(names, found[:limit]), *([more] if more else []))


def write_parquet(reader: "pa.RecordBatchReader", file: Path) -> int:
    """Write a stream of batches to a Parquet file, which appears once it is complete.

    Returns:
        The number of rows.
    """
    import pyarrow.parquet as pq

    unfinished = file.with_name(f".{file.name}.unfinished")
    rows = 0
    try:
        with pq.ParquetWriter(unfinished, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


def _rows(reader: "pa.RecordBatchReader") -> Iterator[dict[str, Any]]:
    for batch in reader:
        yield from batch.to_pylist()
