"""Whole numbers become floats and texts, floats keep their digits, times of ORC are the table's."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.source import promotion
from tidegate.source.hudi.table.promotion import cast_of_orc, cast_to


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    cast = cast_to(values.type, kind)
    assert cast is not None
    return cast(values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [(pa.float64(), [1.0, None, 2.0**40]), (pa.string(), ["1", None, str(2**40)])],
    ids=str,
)
def test_whole_numbers_become_floats_and_texts(kind: pa.DataType, values: list[object]) -> None:
    assert _cast(pa.array([1, None, 2**40]), kind).to_pylist() == values


@given(value=st.floats(width=32, min_value=-(2**24), max_value=2**24, allow_subnormal=False))
def test_float_becomes_the_double_that_is_written_with_its_digits(value: float) -> None:
    """NumPy spells floats with the fewest digits, too."""
    (made,) = _cast(pa.array([value], pa.float32()), pa.float64()).to_pylist()

    assert made == float(str(np.float32(value)))
    assert math.copysign(1, made) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("found", "made"),
    [
        (16_777_217, 16_777_216.0),
        (361_440_704, 361_440_704.0),
        (1_929_607_810, 1_929_607_810.0),
        (-11_884_683_100_000, -11_884_683_100_000.0),
        (2.0**62, 4_611_686_000_000_000_000.0),
        (2.0**70, 1.1805916e21),
    ],
)
def test_large_floats_become_what_java_17_writes(found: float, made: float) -> None:
    assert _cast(pa.array([float(found)], pa.float32()), pa.float64()).to_pylist() == [made]


def test_missing_floats_stay_missing() -> None:
    values = pa.array([1.5, None, 2.0**40, None], pa.float32())

    assert _cast(values.slice(1), pa.float64()).to_pylist() == [None, 1_099_511_630_000.0, None]


def test_floats_of_orc_keep_their_value() -> None:
    cast = cast_of_orc(pa.float32(), pa.float64())
    values = pa.array([0.1, 361_440_704.0, None], pa.float32())

    assert cast is not None
    assert cast(values).equals(values.cast(pa.float64()))


def test_what_is_no_number_stays_so() -> None:
    found = pa.array([math.nan, math.inf, -math.inf, None], pa.float32())

    assert str(_cast(found, pa.float64())) == str(found.cast(pa.float64()))


@pytest.mark.parametrize("unit", ["us", "ms"])
def test_timestamp_without_zone_is_in_utc_where_the_table_says_so(unit: str) -> None:
    kind = pa.timestamp(unit, "UTC")

    made = _cast(pa.array([-1_000_000, None, 10**18], pa.timestamp("ns")), kind)

    assert made.equals(pa.array([-1_000_000, None, 10**18], pa.timestamp("ns", "UTC")).cast(kind))


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.string()),
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.int64()),
        (pa.float64(), pa.float32()),
        (pa.string(), pa.float64()),
    ],
    ids=str,
)
def test_other_types_are_cast_as_everywhere(found: pa.DataType, kind: pa.DataType) -> None:
    made, usual = cast_to(found, kind), promotion.cast_to(found, kind)

    assert (made is None) == (usual is None)
    if made is not None and usual is not None:
        values = pa.array([7, None], found)
        assert made(values).equals(usual(values))
