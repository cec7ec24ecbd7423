"""Files of different schemas get one, and every value comes through it unharmed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ColumnTypesDiffer
from tidegate.target.schema import common_type, plain, unified

WIDENED = [
    pytest.param(pa.int32(), pa.int64(), 2**31 - 1, pa.int64(), id="int to long"),
    pytest.param(pa.uint32(), pa.int64(), 2**32 - 1, pa.int64(), id="unsigned to long"),
    pytest.param(pa.float32(), pa.float64(), 1.5, pa.float64(), id="float to double"),
    pytest.param(
        pa.decimal128(9, 2),
        pa.decimal128(18, 2),
        Decimal("1234567.89"),
        pa.decimal128(18, 2),
        id="decimal",
    ),
    pytest.param(
        pa.decimal128(38, 2),
        pa.decimal256(50, 2),
        Decimal("1.50"),
        pa.decimal256(50, 2),
        id="decimal to 256 bits",
    ),
    pytest.param(
        pa.date32(), pa.timestamp("us"), dt.date(2020, 2, 29), pa.timestamp("us"), id="date to time"
    ),
    pytest.param(
        pa.timestamp("ms"),
        pa.timestamp("us"),
        dt.datetime(2020, 2, 29, 1, 2, 3, 4000),  # noqa: DTZ001
        pa.timestamp("us"),
        id="finer unit",
    ),
    pytest.param(
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "Europe/Berlin"),
        dt.datetime(2020, 2, 29, tzinfo=dt.UTC),
        pa.timestamp("us", "UTC"),
        id="zones",
    ),
    pytest.param(
        pa.time32("s"), pa.time32("ms"), dt.time(1, 2, 3), pa.time32("ms"), id="finer time of day"
    ),
    pytest.param(
        pa.time32("s"), pa.time64("us"), dt.time(1, 2, 3), pa.time64("us"), id="longer time of day"
    ),
    pytest.param(pa.null(), pa.string(), None, pa.string(), id="unknown to any"),
    pytest.param(pa.string(), pa.large_string(), "ü", pa.large_string(), id="large text"),
    pytest.param(pa.binary(), pa.large_binary(), b"\0", pa.large_binary(), id="large binary"),
    pytest.param(
        pa.struct([("a", pa.int32())]),
        pa.struct([("b", pa.string()), ("a", pa.int64())]),
        {"a": 7},
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        id="struct",
    ),
    pytest.param(
        pa.list_(pa.int32()),
        pa.large_list(pa.int64()),
        [7, None],
        pa.list_(pa.field("element", pa.int64())),
        id="list",
    ),
    pytest.param(
        pa.map_(pa.string(), pa.int32()),
        pa.map_(pa.string(), pa.int64()),
        [("k", 7)],
        pa.map_(pa.string(), pa.int64()),
        id="map",
    ),
]
DIFFERENT = [
    pytest.param(pa.int64(), pa.string(), id="number and text"),
    pytest.param(pa.int64(), pa.float64(), id="long and double"),
    pytest.param(pa.int64(), pa.uint64(), id="signs"),
    pytest.param(pa.int8(), pa.uint64(), id="signs of different widths"),
    pytest.param(pa.uint64(), pa.int64(), id="signs the other way"),
    pytest.param(pa.decimal128(9, 2), pa.decimal128(9, 3), id="scales"),
    pytest.param(pa.timestamp("us"), pa.timestamp("us", "UTC"), id="with and without zone"),
    pytest.param(pa.date32(), pa.timestamp("us", "UTC"), id="date and moment"),
    pytest.param(pa.int64(), pa.timestamp("us"), id="number and time"),
    pytest.param(pa.string(), pa.binary(), id="text and binary"),
    pytest.param(pa.bool_(), pa.int8(), id="boolean"),
    pytest.param(pa.struct([("a", pa.int8())]), pa.struct([("a", pa.string())]), id="inside"),
    pytest.param(pa.list_(pa.int8()), pa.int8(), id="list and element"),
]
PRIMITIVES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null(), pa.date32()),
    *(pa.decimal128(5, 2), pa.decimal128(9, 2), pa.decimal128(9, 4), pa.decimal256(50, 2)),
    *(pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time32("ms")),
    *(pa.time64("us"), pa.string(), pa.large_string(), pa.binary(), pa.binary(4)),
]
kinds = st.recursive(
    st.sampled_from(PRIMITIVES),
    lambda inner: (
        inner.map(lambda kind: pa.list_(pa.field("element", kind)))
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(
            lambda fields: pa.struct(list(fields.items()))
        )
    ),
    max_leaves=3,
)


@pytest.mark.parametrize(("one", "other", "value", "wide"), WIDENED)
def test_common_type_holds_the_values_of_the_narrower_one(
    one: pa.DataType, other: pa.DataType, value: Any, wide: pa.DataType
) -> None:
    assert common_type(plain(one), plain(other)) == wide

    column = pa.array([value, None], one).cast(wide)

    held = column.to_pylist()[0]
    if isinstance(value, dict):
        held = {key: held[key] for key in value}
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        held = held.date()
    assert held == value


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_types_that_no_type_holds_are_refused_naming_both_files(
    one: pa.DataType, other: pa.DataType
) -> None:
    schemas = [("a.parquet", pa.schema([("x", one)])), ("b.parquet", pa.schema([("x", other)]))]

    with pytest.raises(ColumnTypesDiffer) as refused:
        unified(schemas)

    assert (refused.value.column, refused.value.file, refused.value.other_file) == (
        "x",
        "b.parquet",
        "a.parquet",
    )


@given(kinds, kinds)
def test_common_type_does_not_depend_on_the_order_but_of_struct_fields(
    one: pa.DataType, other: pa.DataType
) -> None:
    assert _sorted(common_type(one, other)) == _sorted(common_type(other, one))


@given(kinds, kinds)
def test_common_type_takes_in_both_and_stays(one: pa.DataType, other: pa.DataType) -> None:
    wide = common_type(one, other)

    assert common_type(one, one) == one
    if wide is not None:
        assert _sorted(common_type(wide, one)) == _sorted(common_type(wide, other)) == _sorted(wide)
        pa.nulls(2, one).cast(wide)
        pa.nulls(2, other).cast(wide)


def test_columns_of_any_file_stand_in_the_order_of_the_files() -> None:
    found = unified(
        [
            ("a", pa.schema([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])),
            ("b", pa.schema([("z", pa.dictionary(pa.int8(), pa.string())), ("x", pa.int64())])),
        ]
    )

    assert found == pa.schema([("x", pa.int64()), ("y", pa.string()), ("z", pa.string())])
    assert unified([]) == pa.schema([])


def _sorted(kind: pa.DataType | None) -> Any:
    """Give a type with the fields of structs in the order of their names."""
    if kind is None:
        return None
    if pa.types.is_struct(kind):
        return ("struct", sorted((field.name, _sorted(field.type)) for field in kind))
    if pa.types.is_list(kind):
        return ("list", _sorted(kind.value_type))
    return str(kind)
