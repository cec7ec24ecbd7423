"""The command that compares two revisions of a partition: diff."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import diff_view
from tidegate.cli.arguments import AsJson, PartitionText, PipelineName
from tidegate.cli.look_commands import write_parquet
from tidegate.cli.opening import open_pipeline
from tidegate.cli.output import reporting
from tidegate.cli.status_view import facts
from tidegate.model.partition import Transform

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.config.target import TargetConfig
    from tidegate.target.difference import Change, Difference


def diff(
    pipeline: PipelineName,
    partition: PartitionText,
    one: Annotated[
        int | None,
        typer.Argument(
            metavar="[R1]",
            min=0,
            help="A revision; by default the one before R2. 0: before the first.",
        ),
    ] = None,
    other: Annotated[
        int | None,
        typer.Argument(metavar="[R2]", min=0, help="A revision; by default the newest."),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns, as a,b, that tell which row became which; by default `target.keys`. "
            "Without, a row that changed is one that was removed, and one that was added.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Print this many rows of each kind.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write all of these rows into this Parquet file instead; the column `_diff` has "
            "removed, added, before or after."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which rows two revisions of a partition differ in: added, removed, changed by key."""
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline)
        named = _keys(opened.config.target, keys)
        with output.progress() as progress:
            progress.add_task(f"comparing revisions of {partition}")
            shown = opened.difference(opened.parse_partition(partition), one, other, keys=named)
            if out is not None:
                rows = write_parquet(shown.found.all_rows(), out)
                samples = None
            else:
                samples = _samples(shown.found, limit)
        if samples is None:
            raw = {**diff_view.raw(shown), "file": str(out), "rows_written": rows}
            output.show(raw, facts(diff_view.facts(shown)), f"Wrote {rows:,} rows to {out}.")
            return
        more = diff_view.more(shown, samples)
        tables = diff_view.sample_tables(samples, named)
        output.show(
            diff_view.raw(shown, samples),
            facts(diff_view.facts(shown)),
            *tables,
            *([more] if more else []),
        )


def _keys(target: "TargetConfig", said: str | None) -> tuple[str, ...]:
    """Return the columns that were named, or those of the table's keys that its files have."""
    if said is not None:
        return tuple(filter(None, (key.strip() for key in said.split(","))))
    whole = [field for field in target.partition_by if field.transform is Transform.IDENTITY]
    in_path = {field.column for field in whole}
    return tuple(key for key in target.keys if key not in in_path)


def _samples(found: "Difference", limit: int) -> diff_view.Samples:
    """Return the first rows of each kind, after all changed ones were counted by column."""
    changed: list[diff_view.ChangedRow] = []
    for change in found.changes():
        changed += _changed_rows(change, limit - len(changed))
    return diff_view.Samples(
        changed,
        list(_first(found.removed_rows(), limit)),
        list(_first(found.added_rows(), limit)),
    )


def _changed_rows(change: "Change", limit: int) -> Iterator[diff_view.ChangedRow]:
    before, after = (side.slice(0, limit).to_pylist() for side in (change.before, change.after))
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        columns = [name for name, differs in change.differs.items() if differs[place]]
        yield diff_view.ChangedRow(old, new, columns)


def _first(batches: "Iterator[pa.RecordBatch]", limit: int) -> "Iterator[diff_view.Row]":
    rows = (row for batch in batches for row in batch.slice(0, limit).to_pylist())
    return islice(rows, limit)
