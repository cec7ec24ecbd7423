"""A cast that is allowed loses nothing, and one that might lose something is refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.source.promotion import cast_to

SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
INTEGERS = SIGNED + UNSIGNED


def _range(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width - pa.types.is_signed_integer(kind)
    return (-(1 << bits) if pa.types.is_signed_integer(kind) else 0), (1 << bits) - 1


@pytest.mark.parametrize("found", INTEGERS, ids=str)
@pytest.mark.parametrize("wanted", INTEGERS, ids=str)
def test_integer_is_promoted_exactly_where_all_its_values_fit_a_wider_one(
    found: pa.DataType, wanted: pa.DataType
) -> None:
    low, high = _range(found)
    fits = _range(wanted)[0] <= low and high <= _range(wanted)[1] and found != wanted

    cast = cast_to(found, wanted)

    assert (cast is not None) == fits
    if cast is not None:
        assert cast(pa.array([low, None, high], found)).to_pylist() == [low, None, high]


@given(st.integers(6, 18), st.integers(0, 6), st.integers(6, 18), st.integers(0, 6), st.data())
def test_decimal_is_promoted_only_to_more_digits_of_the_same_scale(
    precision: int, scale: int, other: int, other_scale: int, data: st.DataObject
) -> None:
    found = pa.decimal128(precision, scale)
    cast = cast_to(found, pa.decimal128(other, other_scale))
    most = 10**precision - 1
    value = Decimal(data.draw(st.integers(-most, most))).scaleb(-scale)

    assert (cast is not None) == (scale == other_scale and precision <= other)
    if cast is not None:
        assert cast(pa.array([value], found)).to_pylist() == [value]


TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]


@pytest.mark.parametrize("found", [*TEXTS, *BYTES], ids=str)
@pytest.mark.parametrize("wanted", [*TEXTS, *BYTES], ids=str)
def test_text_becomes_text_and_bytes_become_bytes(found: pa.DataType, wanted: pa.DataType) -> None:
    value: Any = "ä" if found in TEXTS else b"\xff"

    cast = cast_to(found, wanted)

    assert (cast is not None) == ((found in TEXTS) == (wanted in TEXTS))
    if cast is not None:
        assert cast(pa.array([value, None], found)).to_pylist() == [value, None]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.string(), pa.string()),
        (pa.string(), pa.large_string()),
        (pa.int32(), pa.int64()),
        (pa.date32(), pa.timestamp("us")),
    ],
    ids=str,
)
def test_dictionary_is_read_as_its_values_are(found: pa.DataType, wanted: pa.DataType) -> None:
    plain = pa.array([1, None, 1], pa.int32()).cast(found)

    cast = cast_to(pa.dictionary(pa.int8(), found), wanted)

    assert cast is not None
    assert cast(plain.dictionary_encode()).to_pylist() == plain.cast(wanted).to_pylist()


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.float64(), pa.float32()),
        (pa.int32(), pa.float64()),
        (pa.bool_(), pa.int32()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.date32()),
        (pa.binary(8), pa.uuid()),
        (pa.string(), pa.binary()),
    ],
    ids=str,
)
def test_cast_that_would_change_what_a_value_means_is_refused(
    found: pa.DataType, wanted: pa.DataType
) -> None:
    """ICE-6.16, 6.19: a wall clock never becomes a moment."""
    assert cast_to(found, wanted) is None


@given(st.integers(-(10**15), 10**15))
def test_timestamp_of_a_coarser_unit_keeps_its_value_or_fails(count: int) -> None:
    """ICE-6.19: a cast that would lose digits fails instead."""
    cast = cast_to(pa.timestamp("us"), pa.timestamp("ms"))
    assert cast is not None

    if count % 1_000:
        with pytest.raises(pa.ArrowInvalid, match="lose data"):
            cast(pa.array([count], pa.timestamp("us")))
    else:
        found = cast(pa.array([count], pa.timestamp("us")))
        assert found.cast(pa.int64()).to_pylist() == [count // 1_000]


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)))
def test_day_becomes_its_midnight(day: date) -> None:
    cast = cast_to(pa.date32(), pa.timestamp("us"))

    assert cast is not None
    assert cast(pa.array([day])).to_pylist() == [datetime(day.year, day.month, day.day)]  # noqa: DTZ001


def test_uuid_and_its_bytes_are_read_as_each_other() -> None:
    raw = bytes(range(16))
    there, back = cast_to(pa.binary(16), pa.uuid()), cast_to(pa.uuid(), pa.binary(16))
    assert there is not None
    assert back is not None

    wrapped = there(pa.array([raw, None], pa.binary(16)))

    assert wrapped.type == pa.uuid()
    assert back(wrapped).to_pylist() == [raw, None]


@pytest.mark.parametrize(
    ("wanted", "is_allowed"),
    [
        (pa.timestamp("us"), True),
        (pa.timestamp("us", "UTC"), True),
        (pa.timestamp("ms", "+00:00"), True),
        (pa.timestamp("us", "Europe/Berlin"), False),
        (pa.timestamp("ns"), False),
        (pa.int64(), False),
    ],
    ids=str,
)
def test_int96_is_read_as_a_wall_clock_or_as_utc(wanted: pa.DataType, is_allowed: bool) -> None:
    """Writers mean one or the other by it, and it has no nanoseconds here."""
    assert (cast_to(pa.timestamp("us"), wanted, zoneless=True) is not None) == is_allowed


def test_column_that_is_all_null_becomes_anything() -> None:
    cast = cast_to(pa.null(), pa.list_(pa.int64()))

    assert cast is not None
    assert cast(pa.nulls(2)).to_pylist() == [None, None]
