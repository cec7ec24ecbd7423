"""Whole numbers become floats and texts, times of ORC those of the table; others stay."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.source.hudi.table.promotion import widened
from tidegate.source.named_columns import wanted_column

BATCH = pa.record_batch({"n": pa.array([1, None, 2**40]), "t": ["a", "b", "c"]})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.0, None, 2.0**40]),
        (pa.string(), ["1", None, str(2**40)]),
        (pa.int64(), [1, None, 2**40]),
        (pa.int32(), [1, None, 2**40]),
    ],
    ids=str,
)
def test_column_has_the_wider_type(kind: pa.DataType, values: list[object]) -> None:
    made = widened(BATCH, [wanted_column(pa.field("n", kind))])

    assert made.column("n").to_pylist() == values
    assert made.column("t").to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize("unit", ["us", "ms"])
def test_timestamp_without_zone_is_in_utc_where_the_table_says_so(unit: str) -> None:
    kind = pa.timestamp(unit, "UTC")
    batch = pa.record_batch({"at": pa.array([-1_000_000, None, 10**18], pa.timestamp("ns"))})

    made = widened(batch, [wanted_column(pa.field("at", kind))]).column("at")

    assert made.equals(pa.array([-1_000_000, None, 10**18], pa.timestamp("ns", "UTC")).cast(kind))


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("ns"), pa.string()),
    ],
    ids=str,
)
def test_other_timestamps_are_left_as_they_are(found: pa.DataType, kind: pa.DataType) -> None:
    batch = pa.record_batch({"at": pa.array([10**9], found)})

    assert widened(batch, [wanted_column(pa.field("at", kind))]).equals(batch)
