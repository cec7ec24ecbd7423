"""Whole arrays are brought into their meaning, also slices of them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical import avro_arrays

UNSCALED = st.none() | st.integers(-(10**38) + 1, 10**38 - 1)


def _encoded(unscaled: int, padding: int) -> bytes:
    length = unscaled.bit_length() // 8 + 1
    return unscaled.to_bytes(min(length + padding, 16), "big", signed=True)


@given(
    numbers=st.lists(UNSCALED, max_size=10),
    padding=st.integers(0, 3),
    scale=st.integers(0, 10),
    start=st.integers(0, 4),
)
def test_decimals_of_any_bytes_are_their_numbers(
    numbers: list[int | None], padding: int, scale: int, start: int
) -> None:
    encoded = [None if number is None else _encoded(number, padding) for number in numbers]
    expected = [None if number is None else Decimal(f"{number}e-{scale}") for number in numbers]

    for kind in (pa.binary(), pa.large_binary()):
        found = avro_arrays.decimals(pa.array(encoded, kind).slice(start), pa.decimal128(38, scale))

        assert found.to_pylist() == expected[start:]


@given(
    values=st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), max_size=8),
    start=st.integers(0, 4),
)
def test_lists_keep_their_nulls_and_offsets(
    values: list[list[int | None] | None], start: int
) -> None:
    array = pa.array(values, pa.large_list(pa.int32())).slice(start)
    meaning = pa.list_(pa.field("element", pa.int64()))

    found = avro_arrays.lists(array, meaning, lambda items: pc.add(items.cast(pa.int64()), 1))

    found.validate(full=True)
    expected = [
        None if items is None else [None if item is None else item + 1 for item in items]
        for items in values[start:]
    ]
    assert found.type == meaning
    assert found.to_pylist() == expected


@given(
    values=st.lists(
        st.none() | st.dictionaries(st.text(max_size=2), st.none() | st.integers(0, 9), max_size=3),
        max_size=8,
    ),
    start=st.integers(0, 4),
)
def test_maps_are_made_of_pairs(values: list[dict[str, int | None] | None], start: int) -> None:
    pair = pa.struct([("key", pa.large_string()), ("value", pa.int32())])
    pairs = [
        None if value is None else [{"key": key, "value": item} for key, item in value.items()]
        for value in values
    ]
    meaning = pa.map_(pa.string(), pa.int64())

    found = avro_arrays.maps(
        pa.array(pairs, pa.large_list(pair)).slice(start),
        meaning,
        lambda keys: keys.cast(pa.string()),
        lambda items: items.cast(pa.int64()),
    )

    found.validate(full=True)
    assert found.to_pylist() == [
        None if value is None else list(value.items()) for value in values[start:]
    ]


def test_struct_keeps_its_nulls_and_gets_fields_that_are_always_null() -> None:
    array = pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())]))
    meaning = pa.struct([("nothing", pa.null()), ("a", pa.int64())])

    found = avro_arrays.structs(array, meaning, [None, lambda items: items.cast(pa.int64())])

    assert found.to_pylist() == [{"nothing": None, "a": 1}, None, {"nothing": None, "a": None}]
