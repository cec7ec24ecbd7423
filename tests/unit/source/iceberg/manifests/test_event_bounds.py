"""Bounds of event times are what the writer counted, whatever the column's type and unit."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from tidegate.model.event_column import EventColumn
from tidegate.model.time_bounds import TimeBounds
from tidegate.physical import ParquetRows
from tidegate.source.iceberg.manifests.event_bounds import EventBounds
from tidegate.source.iceberg.manifests.metrics import ColumnMetrics, Metrics

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())
BERLIN = datetime(2024, 3, 1, 11, tzinfo=UTC)
"""Noon of Berlin's clocks."""


def _bounds(kind: IcebergType, unit: str = "us") -> EventBounds | None:
    schema = Schema(NestedField(7, "at", kind))
    return EventBounds.of(schema, EventColumn("at", "Europe/Berlin", unit))


def _metrics(low: bytes | None, high: bytes | None, nulls: int | None = 0) -> Metrics:
    return Metrics(9, {7: 0}, (ColumnMetrics(nulls=nulls, lower=low, upper=high),))


def _long(number: int) -> bytes:
    return struct.pack("<q", number)


@pytest.mark.parametrize(
    ("kind", "unit", "low", "expected"),
    [
        (TimestamptzType(), "us", _long(SECONDS * 10**6), NOON),
        (TimestamptzNanoType(), "us", _long(SECONDS * 10**9), NOON),
        (TimestampType(), "us", _long(SECONDS * 10**6), BERLIN),
        (TimestampNanoType(), "us", _long(SECONDS * 10**9), BERLIN),
        (TimestampType(), "us", struct.pack("<i", SECONDS // 86_400), BERLIN.replace(hour=0)),
        (DateType(), "us", struct.pack("<i", SECONDS // 86_400), BERLIN.replace(hour=0)),
        (LongType(), "us", _long(SECONDS * 10**6), NOON),
        (LongType(), "ms", _long(SECONDS * 10**3), NOON),
        (LongType(), "s", _long(SECONDS), NOON),
        (LongType(), "ns", _long(SECONDS * 10**9), NOON),
        (LongType(), "s", struct.pack("<i", SECONDS), NOON),
    ],
    ids=[
        "moment", "moment-nanos", "wall-clock", "wall-clock-nanos", "promoted-date", "date",
        "long-us", "long-ms", "long-s", "long-ns", "promoted-int",
    ],
)  # fmt: skip
def test_bound_of_any_time_is_that_moment(
    kind: IcebergType, unit: str, low: bytes, expected: datetime
) -> None:
    bounds = _bounds(kind, unit)

    assert bounds is not None
    # Berlin's midnight is the evening before.
    found = bounds.read(_metrics(low, low))
    if expected.hour == 0:
        expected = datetime(2024, 2, 29, 23, tzinfo=UTC)
    assert found == TimeBounds(expected, expected)


def test_nanoseconds_widen_to_microseconds() -> None:
    bounds = _bounds(LongType(), "ns")

    assert bounds is not None
    found = bounds.read(_metrics(_long(1_999), _long(1_001)))
    assert found is not None
    assert found.smallest == datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert found.largest == datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC)


def test_times_beyond_the_calendar_are_its_ends() -> None:
    bounds = _bounds(TimestampType())

    assert bounds is not None
    found = bounds.read(_metrics(_long(-(2**63)), _long(2**63 - 1)))
    assert found is not None
    assert found.smallest == datetime.min.replace(tzinfo=UTC)
    assert found.largest is not None
    assert found.largest.year == 9999


@pytest.mark.parametrize(
    ("low", "high", "nulls", "expected"),
    [
        (None, None, 9, TimeBounds()),
        (None, None, 0, None),
        (None, None, None, None),
        (None, _long(0), 0, None),
    ],
    ids=["all-null", "no-bounds", "no-counts", "one-bound"],
)
def test_missing_bounds_are_unknown_unless_all_is_null(
    low: bytes | None, high: bytes | None, nulls: int | None, expected: TimeBounds | None
) -> None:
    bounds = _bounds(TimestamptzType())

    assert bounds is not None
    assert bounds.read(_metrics(low, high, nulls)) == expected


def test_column_that_holds_no_times_has_no_bounds() -> None:
    assert _bounds(StringType()) is None
    schema = Schema(NestedField(7, "at", TimestamptzType()))
    assert EventBounds.of(schema, EventColumn("absent", "UTC")) is None


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([SECONDS * 1000, None], pa.timestamp("ms", "UTC")), TimestamptzType()),
        (pa.array([SECONDS * 10**6] * 2, pa.timestamp("us", "UTC")), TimestamptzType()),
        (pa.array([SECONDS * 10**9] * 2, pa.timestamp("ns", "UTC")), TimestamptzNanoType()),
        (pa.array([SECONDS * 10**6] * 2), LongType()),
    ],
    ids=["ms", "us", "ns", "long"],
)
def test_footer_tells_the_same_bounds(column: pa.Array, kind: IcebergType, tmp_path: Path) -> None:
    bounds = _bounds(kind)
    field = pa.field("renamed", column.type, metadata={"PARQUET:field_id": "7"})
    pq.write_table(pa.table([column], pa.schema([field])), tmp_path / "f", row_group_size=1)

    assert bounds is not None
    with ParquetRows(pa.OSFile(str(tmp_path / "f"))) as rows:
        assert bounds.read_footer(rows) == TimeBounds(NOON, NOON)


def test_footer_without_statistics_does_not_tell(tmp_path: Path) -> None:
    bounds = _bounds(LongType())
    field = pa.field("at", pa.int64(), metadata={"PARQUET:field_id": "7"})
    table = pa.table([pa.array([1])], pa.schema([field]))
    pq.write_table(table, tmp_path / "f", write_statistics=False)

    assert bounds is not None
    with ParquetRows(pa.OSFile(str(tmp_path / "f"))) as rows:
        assert bounds.read_footer(rows) is None
