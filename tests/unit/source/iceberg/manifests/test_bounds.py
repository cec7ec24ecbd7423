"""Bounds come back as values that compare as the column does, or say nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from tidegate.source.iceberg.manifests.bounds import decode_bounds, order_of

INTS, LONGS = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
CENTS = st.integers(-(10**17), 10**17).map(lambda cents: Decimal(cents).scaleb(-2))
TEXTS = st.text(max_size=6)
OF_KIND: dict[str, tuple[PrimitiveType, st.SearchStrategy[Any]]] = {
    "int": (IntegerType(), INTS),
    "long": (LongType(), LONGS),
    "date": (DateType(), INTS),
    "timestamp": (TimestampType(), LONGS),
    "timestamptz": (TimestamptzType(), LONGS),
    "decimal": (DecimalType(18, 2), CENTS),
    "string": (StringType(), TEXTS),
    "boolean": (BooleanType(), st.booleans()),
    "double": (DoubleType(), st.floats(allow_nan=False)),
}


@pytest.mark.parametrize("name", OF_KIND)
@given(data=st.data())
def test_bounds_compare_as_the_values_that_the_library_wrote(
    name: str, data: st.DataObject
) -> None:
    kind, values = OF_KIND[name]
    low, high, asked = data.draw(values), data.draw(values), data.draw(values)

    found = decode_bounds(kind, to_bytes(kind, low), to_bytes(kind, high))

    assert found is not None
    assert (found[0] <= asked, asked <= found[1]) == (low <= asked, asked <= high)


@given(low=INTS, high=INTS)
def test_bounds_of_an_int_are_those_of_the_long_that_it_became(low: int, high: int) -> None:
    written = IntegerType()

    found = decode_bounds(LongType(), to_bytes(written, low), to_bytes(written, high))

    assert found == (low, high)


@given(low=st.uuids(), high=st.uuids())
def test_bounds_of_uuids_compare_as_unsigned_bytes(low: Any, high: Any) -> None:
    """ICE-4.9: Java compares the halves as signed numbers, the specification as bytes."""
    found = decode_bounds(UUIDType(), low.bytes, high.bytes)

    assert found == (low.bytes, high.bytes)
    assert (found[0] < found[1]) == (low.int < high.int)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(None, b"\x01" * 8), (b"\x01" * 8, None), (None, None)],
    ids=["no lower", "no upper", "neither"],
)
def test_one_bound_alone_says_nothing(lower: bytes | None, upper: bytes | None) -> None:
    assert decode_bounds(LongType(), lower, upper) is None


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (TimestampType(), to_bytes(DateType(), 1)),
        (DoubleType(), to_bytes(FloatType(), 1.0)),
        (StringType(), b"\xff\xfe"),
        (LongType(), b""),
        (UUIDType(), b"\x01\x02"),
    ],
    ids=["date-as-timestamp", "float-as-double", "no-utf8", "empty", "short-uuid"],
)
def test_bound_that_was_written_as_another_type_never_raises(
    kind: PrimitiveType, bound: bytes
) -> None:
    found = decode_bounds(kind, bound, bound)

    assert found is None or found[0] == found[1]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (IntegerType(), LongType(), True),
        (DecimalType(9, 2), DecimalType(18, 2), True),
        (DecimalType(9, 2), DecimalType(9, 3), False),
        (DateType(), TimestampType(), False),
        (TimestampType(), TimestamptzType(), False),
        (StringType(), LongType(), False),
    ],
    ids=["int-long", "wider-decimal", "other-scale", "date-time", "zone", "text-number"],
)
def test_types_share_an_order_only_where_their_bounds_compare(
    one: PrimitiveType, other: PrimitiveType, is_same: bool
) -> None:
    assert (order_of(one) == order_of(other)) == is_same
