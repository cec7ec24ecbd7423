"""Whole numbers become floats and texts; every other column stays as it is."""

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
