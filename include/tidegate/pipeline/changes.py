"""Read the changes of a table, without running a pipeline."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.config import SourceConfig, read_source
from tidegate.config.reading import METADATA_COLUMNS
from tidegate.errors import InstantNotFound
from tidegate.model.instant import Instant, InstantRange
from tidegate.pipeline.load.change_stream import ChangeStream
from tidegate.pipeline.state.reading import Reading, filter_columns
from tidegate.read.merge import first_rows
from tidegate.source import open_source
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from tidegate.model.plan import Pin
    from tidegate.source.protocol import Source

EARLIEST = "earliest"
LATEST = "latest"
_KEYS_OF_EVERY_MODE = {"columns", "filter", "schema"}


def read_changes(  # noqa: PLR0913 (all but the first by keyword)
    source: Mapping[str, Any] | SourceConfig,
    *,
    start_exclusive: str | int | None = None,
    end_inclusive: str | int | None = None,
    mode: str | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Read the changes of a table between two instants.

    Args:
        source: the `source` section of a pipeline file.
        start_exclusive: an instant of the source (Iceberg: a snapshot id), an ISO time with
            its zone (the last instant at or before it), `earliest` or `latest`; None is
            `earliest`.
        end_inclusive: the same; None is `latest`.
        mode: `append`, the default: rows that were added; `snapshot`: the table as of the end;
            `changelog`: the inserts, updates and deletes of each commit; `snapshot_diff`: the
            difference between the two instants, which may be any two that are retained;
            `lineage_upserts`: rows that were written since the start, by the row lineage of format
            3.
        columns: output columns in this order; all by default.
        filter: SQL condition, such as `region = 'eu' and amount > 10`.
        limit: the most rows; the first ones in the order of the plan. Files after them are not
            opened.

    Returns:
        A stream of batches. Memory is bounded by the batch size and the delete files; a commit
        whose changes are more than `split.target_size` is settled through temporary files.

    Raises:
        ConfigInvalid: the mapping is not a valid `source` section.
        InstantNotFound: a bound names no instant.
        TidegateError: an error of the source.

    Examples:
        >>> source = {"kind": "files", "path": orders}
        >>> read_changes(
        ...     source, columns=["id", "amount"], filter="amount > 15"
        ... ).read_all().to_pylist()
        [{'id': 2, 'amount': 20.0}, {'id': 3, 'amount': 30.0}]
    """
    import pyarrow as pa

    config = _source_config(source, mode, columns, filter)
    opened = open_source(config, LocalStorage(), None, filter_columns(config.read))
    # A call from a notebook is a command of its own, so it reads the clock itself.
    pin = opened.timeline.pin(datetime.now(UTC))  # noqa: TID251
    window = _window(opened, pin, start_exclusive, end_inclusive)
    if window is None:
        reading = Reading.of(config, opened, pin)
        return pa.RecordBatchReader.from_batches(reading.schema, [])
    pinned = (
        pin if end_inclusive in {None, LATEST} else opened.timeline.at(pin, window.end_inclusive)
    )
    reading = Reading.of(config, opened, pinned)
    limit = limit or config.read.limit
    units = opened.slicing.units(pinned, window, enough=limit)
    stream = ChangeStream(opened.name, reading, config.split)
    batches = stream.batches(units.pieces, units.checks)
    if limit is not None:
        batches = first_rows(batches, limit)
    return pa.RecordBatchReader.from_batches(reading.schema, batches)


def _source_config(
    source: Mapping[str, Any] | SourceConfig,
    mode: str | None,
    columns: Sequence[str] | None,
    filter_text: str | None,
) -> SourceConfig:
    raw = (
        source.model_dump(mode="json", by_alias=True)
        if isinstance(source, SourceConfig)
        else dict(source)
    )
    read = dict(raw.get("read") or {})
    if mode is not None and mode != read.get("mode", mode):
        read = _fitting(read, mode)
    given = {"mode": mode, "columns": list(columns) if columns else None, "filter": filter_text}
    read |= {key: item for key, item in given.items() if item is not None}
    # Without a start, these are the rows that were added since the oldest retained instant.
    return read_source({**raw, "read": read, "start": "full"}).from_the_beginning()


def _fitting(read: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Remove the options of the pipeline file's own mode that another mode does not have."""
    kept = {key: item for key, item in read.items() if key in _KEYS_OF_EVERY_MODE}
    if kept.get("columns"):
        known = METADATA_COLUMNS.get(mode, frozenset())
        other = frozenset[str]().union(*METADATA_COLUMNS.values()) - known
        kept["columns"] = [name for name in kept["columns"] if name not in other] or None
    return kept


def _window(
    source: Source, pin: Pin, start: str | int | None, end: str | int | None
) -> InstantRange | None:
    """Turn bounds into a range; None if it is empty."""
    end_instant = _bound(source, pin, end, LATEST)
    start_instant = _bound(source, pin, start, EARLIEST)
    if end_instant is None or (start_instant is not None and start_instant.id == end_instant.id):
        return None
    if start_instant is not None:
        known = {
            item.id
            for item in source.timeline.instants(
                source.timeline.at(pin, end_instant), start_instant
            )
        }
        if end_instant.id not in known:
            raise InstantNotFound(
                source=source.name, instant=f"{end_instant.id} after {start_instant.id}"
            )
    return InstantRange(start_instant, end_instant)


def _bound(source: Source, pin: Pin, given: str | int | None, default: str) -> Instant | None:
    text = default if given is None else str(given)
    if text == EARLIEST:
        return None
    if text == LATEST:
        return pin.head
    return source.timeline.instant(pin, text)
