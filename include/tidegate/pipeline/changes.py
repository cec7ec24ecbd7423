"""Read the changes of a table, without running a pipeline."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from tidegate.config import SourceConfig, read_source, read_store
from tidegate.config.pipeline import known_zone
from tidegate.errors import BoundsReversed, ConfigInvalid, InstantNotFound
from tidegate.model.instant import Instant, InstantRange, time_in_zone
from tidegate.pipeline.load.change_stream import ChangeStream
from tidegate.pipeline.state.places import Roots
from tidegate.pipeline.state.reading import Reading, filter_columns
from tidegate.read.merge import first_rows
from tidegate.source import open_source
from tidegate.source.words import first_few
from tidegate.stage import layout
from tidegate.storage import Scratch, Stores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tidegate.config import PipelineConfig
    from tidegate.model.plan import Pin
    from tidegate.source.protocol import Source

_log = logging.getLogger(__name__)

Bound = str | int | date
"""An instant, a date or a time, as `read_changes` takes it."""

EARLIEST = "earliest"
LATEST = "latest"
_KEYS_OF_EVERY_MODE = {"columns", "filter", "schema"}


def read_changes(  # noqa: PLR0913 (all but the first by keyword)
    source: Mapping[str, Any] | SourceConfig,
    *,
    start_exclusive: Bound | None = None,
    end_inclusive: Bound | None = None,
    mode: str | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    limit: int | None = None,
    timezone: str = "UTC",
    s3: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Read the changes of a table between two instants.

    Args:
        source: the `source` section of a pipeline file.
        start_exclusive: an instant of the source (Iceberg: a snapshot id or a tag), a date or time,
            also as ISO text (the last instant at or before it; if there is none, the beginning),
            `earliest` or `latest`; None is `earliest`.
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
        timezone: the zone of dates and times that name none, such as `Europe/Berlin`.
        s3: how a store with plain files is reached, with the keys that the section of a pipeline
            file has.

    Returns:
        A stream of batches. Memory is bounded by the batch size and the delete files; a commit
        whose changes are more than `split.target_size` is settled through temporary files. At its
        end, damaged spans of logs that were skipped are told by a warning of the log.

    Raises:
        ConfigInvalid: the mapping is not a valid `source` section, or another argument is wrong.
        InstantNotFound: a bound names no instant.
        BoundsReversed: the end is not after the start.
        TidegateError: an error of the source.

    Examples:
        >>> source = {"kind": "files", "path": orders}
        >>> read_changes(
        ...     source, columns=["id", "amount"], filter="amount > 15"
        ... ).read_all().to_pylist()
        [{'id': 2, 'amount': 20.0}, {'id': 3, 'amount': 30.0}]
    """
    config = _source_config(source, mode, columns, filter)
    try:
        known_zone(timezone)
    except ValueError as unknown:
        raise ConfigInvalid(
            file="arguments", line=1, key="timezone", problem=str(unknown)
        ) from unknown
    bounds = _Bounds(start_exclusive, end_inclusive, timezone)
    storage = Stores.of(read_store(s3))
    opened = open_source(config, storage, None, filter_columns(config.read), None)
    return _read(opened, config, bounds, limit)


def pipeline_changes(
    pipeline: PipelineConfig,
    *,
    start_exclusive: Bound | None = None,
    end_inclusive: Bound | None = None,
    mode: str | None = None,
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Read the changes of a pipeline's source; see `read_changes`.

    Listings of plain files that the pipeline took are instants; times without a zone are in the
    pipeline's. Nothing is written.
    """
    config = _source_config(pipeline.source, mode, None, None)
    bounds = _Bounds(start_exclusive, end_inclusive, pipeline.timezone)
    listings = layout.listings_root(Roots.of(pipeline).work)
    opened = open_source(config, Scratch.of(pipeline.s3), listings, filter_columns(config.read))
    return _read(opened, config, bounds, limit)


@dataclass(frozen=True)
class _Bounds:
    """Bounds as they are asked for."""

    start: Bound | None
    end: Bound | None
    timezone: str


def _read(
    opened: Source, config: SourceConfig, bounds: _Bounds, limit: int | None
) -> pa.RecordBatchReader:
    import pyarrow as pa

    if limit is not None and limit < 1:
        problem = f"expected at least 1 row, or None for all, found {limit}"
        raise ConfigInvalid(file="arguments", line=1, key="limit", problem=problem)
    # A call from a notebook is a command of its own, so it reads the clock itself.
    pin = opened.timeline.pin(datetime.now(UTC))  # noqa: TID251
    window = _window(opened, pin, bounds, is_ordered=config.read.mode != "snapshot_diff")
    if window is None:
        reading = Reading.of(config, opened, pin)
        return pa.RecordBatchReader.from_batches(reading.schema, [])
    pinned = pin if bounds.end in {None, LATEST} else opened.timeline.at(pin, window.end_inclusive)
    reading = Reading.of(config, opened, pinned)
    limit = limit or config.read.limit
    units = opened.slicing.units(pinned, window, enough=limit)
    stream = ChangeStream(opened.name, reading, config.split)
    batches = stream.batches(units.pieces, units.checks)
    if limit is not None:
        batches = first_rows(batches, limit)
    told = _telling(opened.name, reading, batches)
    return pa.RecordBatchReader.from_batches(reading.schema, told)


def _telling(
    source: str, reading: Reading, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and log at their end what was damaged and skipped."""
    try:
        yield from batches
    finally:
        damaged = reading.ignored.damaged if reading.ignored else {}
        if damaged:
            named = first_few([f"{path} ({count})" for path, count in sorted(damaged.items())])
            _log.warning("%s: skipped damaged spans of log files: %s", source, named)


def _source_config(
    source: Mapping[str, Any] | SourceConfig,
    mode: str | None,
    columns: Sequence[str] | None,
    filter_text: str | None,
) -> SourceConfig:
    raw = _section(source)
    found = raw.get("read") or {}
    if not isinstance(found, Mapping):
        return read_source(raw)  # which refuses it
    read = dict(found)
    if mode is not None and mode != read.get("mode", mode):
        read = _fitting(read, mode, read_source(raw).read.metadata_columns)
    given = {"mode": mode, "columns": list(columns) if columns else None, "filter": filter_text}
    read |= {key: item for key, item in given.items() if item is not None}
    # Without a start, these are the rows that were added since the oldest retained instant.
    return read_source({**raw, "read": read, "start": "full"}).from_the_beginning()


def _section(source: object) -> dict[str, Any]:
    if isinstance(source, SourceConfig):
        return source.model_dump(mode="json", by_alias=True)
    if isinstance(source, Mapping):
        return dict(source)
    problem = (
        f"expected a `source` section (keys with values), found {source!r}. For the changes of a "
        "pipeline's source, use `load_pipeline(...).changes()`"
    )
    raise ConfigInvalid(file="source mapping", line=1, key="source", problem=problem)


def _fitting(
    read: Mapping[str, Any], mode: str, metadata_columns: Mapping[str, frozenset[str]]
) -> dict[str, Any]:
    """Remove the options of the pipeline file's own mode that another mode does not have."""
    kept = {key: item for key, item in read.items() if key in _KEYS_OF_EVERY_MODE}
    if kept.get("columns"):
        known = metadata_columns.get(mode, frozenset())
        other = frozenset[str]().union(*metadata_columns.values()) - known
        kept["columns"] = [name for name in kept["columns"] if name not in other] or None
    return kept


def _window(source: Source, pin: Pin, bounds: _Bounds, *, is_ordered: bool) -> InstantRange | None:
    """Turn bounds into a range; None if it is empty."""
    end = _bound(source, pin, LATEST if bounds.end is None else bounds.end, bounds.timezone)
    start = None if bounds.start is None else _bound(source, pin, bounds.start, bounds.timezone)
    if end is None and start is not None:
        raise BoundsReversed(source=source.name, start=start.id, end=str(bounds.end))
    if end is None:
        return None
    at_end = source.timeline.at(pin, end)
    if bounds.start in {None, EARLIEST}:
        return InstantRange(source.timeline.first_checkpoint(at_end), end)
    if start is None:
        return InstantRange(None, end)
    if start.id == end.id:
        return None
    if is_ordered and _precedes(source, pin, end, start):
        raise BoundsReversed(source=source.name, start=start.id, end=end.id)
    # Refuses a start from which the history does not continue.
    source.timeline.instants(at_end, start)
    return InstantRange(start, end)


def _precedes(source: Source, pin: Pin, one: Instant, other: Instant) -> bool:
    """Return whether an instant is before another; clocks decide only if the history does not."""
    order = [item.id for item in source.timeline.retained(pin)]
    if one.id in order and other.id in order:
        return order.index(one.id) < order.index(other.id)
    return one.time < other.time


def _bound(source: Source, pin: Pin, asked: Bound, zone: str) -> Instant | None:
    """Find the instant that a bound means; None: the state before the first instant."""
    text = str(asked).strip()
    if text == EARLIEST:
        return None
    if text == LATEST:
        return pin.head
    named = source.timeline.named(pin, text)
    if named is not None:
        return named
    moment = time_in_zone(text, zone)
    if moment is None:
        raise InstantNotFound(source=source.name, instant=text)
    return source.timeline.as_of(pin, moment)
