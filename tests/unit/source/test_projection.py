"""Columns become what the schema wants at every depth, sliced or not, without losing a value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SchemaIncompatible
from tidegate.source.column_kernels import Found, Wanted
from tidegate.source.projection import Projection, Projections

_INNER = pa.struct([("x", pa.int32()), ("gone", pa.string())])
_FOUND_TYPE = pa.struct(
    [("list", pa.list_(_INNER)), ("map", pa.map_(pa.string(), pa.int32())), ("inner", _INNER)]
)
_NEW_INNER = pa.struct([("y", pa.int64()), ("added", pa.int32())])
_WANTED_TYPE = pa.struct(
    [
        ("inner", _NEW_INNER),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("list", pa.list_(pa.field("element", _NEW_INNER))),
    ]
)


def _found_inner(name: str, key: int) -> Found:
    children = (Found(1, "x", pa.int32()), Found(2, "gone", pa.string()))
    return Found(key, name, _INNER, children)


def _wanted_inner(name: str, key: int) -> Wanted:
    children = (Wanted(1, "y", pa.int64()), Wanted(3, "added", pa.int32(), default=7))
    return Wanted(key, name, _NEW_INNER, children)


FOUND = Found(
    0,
    "c",
    _FOUND_TYPE,
    (
        Found(10, "list", _FOUND_TYPE.field(0).type, (_found_inner("element", 11),)),
        Found(
            20,
            "map",
            _FOUND_TYPE.field(1).type,
            (Found(21, "key", pa.string()), Found(22, "value", pa.int32())),
        ),
        _found_inner("inner", 30),
    ),
)
WANTED = Wanted(
    0,
    "c",
    _WANTED_TYPE,
    (
        _wanted_inner("inner", 30),
        Wanted(
            20,
            "map",
            _WANTED_TYPE.field(1).type,
            (Wanted(21, "key", pa.string()), Wanted(22, "value", pa.int64())),
        ),
        Wanted(10, "list", _WANTED_TYPE.field(2).type, (_wanted_inner("element", 11),)),
    ),
)

_integers = st.none() | st.integers(-(2**31), 2**31 - 1)
_inners = st.none() | st.fixed_dictionaries(
    {"x": _integers, "gone": st.none() | st.text(max_size=2)}
)
_rows = st.none() | st.fixed_dictionaries(
    {
        "list": st.none() | st.lists(_inners, max_size=3),
        "map": st.none()
        | st.dictionaries(st.text(max_size=2), _integers, max_size=2).map(
            lambda d: list(d.items())
        ),
        "inner": _inners,
    }
)


def _evolve_inner(value: Any) -> Any:
    return None if value is None else {"y": value["x"], "added": 7}


def _evolve(row: Any) -> Any:
    if row is None:
        return None
    elements = row["list"]
    return {
        "inner": _evolve_inner(row["inner"]),
        "map": row["map"],
        "list": None if elements is None else [_evolve_inner(element) for element in elements],
    }


@given(rows=st.lists(_rows, max_size=6), start=st.integers(0, 3), stop=st.integers(0, 6))
def test_nested_columns_evolve_by_key_in_every_slice(
    rows: list[Any], start: int, stop: int
) -> None:
    projection = Projection([WANTED], [FOUND], {}, "f")
    batch = pa.RecordBatch.from_arrays([pa.array(rows, _FOUND_TYPE)], names=["c"])

    evolved = projection.apply(batch.slice(start, max(0, stop - start)), "f")

    evolved.validate(full=True)
    assert evolved.schema == pa.schema([("c", _WANTED_TYPE)])
    assert evolved.column(0).to_pylist() == [_evolve(row) for row in rows[start:stop]]


def _one(found: pa.DataType, wanted: pa.DataType, values: list[Any]) -> list[Any]:
    projection = Projection([Wanted(1, "c", wanted)], [Found(1, "c", found)], {}, "f")
    batch = pa.RecordBatch.from_arrays([pa.array(values, found)], names=["c"])
    result: list[Any] = projection.apply(batch, "f").column(0).to_pylist()
    return result


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.uint8(), pa.int16()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 2)),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.binary_view(), pa.binary()),
        (pa.date32(), pa.timestamp("us")),
        (pa.time32("ms"), pa.time64("us")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.binary(16), pa.uuid()),
        (pa.uuid(), pa.binary(16)),
        (pa.null(), pa.string()),
    ],
    ids=str,
)
def test_type_that_may_be_promoted_keeps_its_nulls(found: pa.DataType, wanted: pa.DataType) -> None:
    assert _one(found, wanted, [None, None]) == [None, None]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.int8(), pa.uint16()),
        (pa.float64(), pa.float32()),
        (pa.int32(), pa.float64()),
        (pa.decimal128(9, 3), pa.decimal128(9, 2)),
        (pa.string(), pa.int64()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.binary(8), pa.uuid()),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.int32(), pa.list_(pa.int32())),
    ],
    ids=str,
)
def test_type_that_would_lose_something_is_refused(found: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(SchemaIncompatible, match="'c'"):
        _one(found, wanted, [None])


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)))
def test_promoted_integers_keep_their_values(values: list[int | None]) -> None:
    assert _one(pa.int32(), pa.int64(), values) == values


def test_nanoseconds_are_not_narrowed_silently() -> None:
    assert _one(pa.timestamp("ns"), pa.timestamp("us"), [1_000]) is not None
    with pytest.raises(SchemaIncompatible, match="would lose data"):
        _one(pa.timestamp("ns"), pa.timestamp("us"), [1_001])


def test_projection_is_decided_once_per_schema_and_values() -> None:
    kept = Projections()
    decided = []

    def decide() -> Projection:
        decided.append(1)
        return Projection([WANTED], [FOUND], {}, "f")

    schema = pa.schema([("c", pa.int32())])
    for values in ({}, {}, {"dt": "1"}, {}):
        kept.get(schema, values, decide)

    assert len(decided) == 2


def test_few_projections_are_kept() -> None:
    kept = Projections()

    for number in range(200):
        kept.get(pa.schema([]), {"dt": str(number)}, lambda: Projection([], [], {}, "f"))

    assert len(kept._kept) <= 64
