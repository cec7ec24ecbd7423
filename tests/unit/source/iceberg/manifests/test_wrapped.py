"""Every value that Java's integers wrapped to is recognised, and no common one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
)
from pyiceberg.types import (
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

from tidegate.source.iceberg.manifests.wrapped import WrappedValues

INT, LONG, TIME, TEXT = 1, 2, 3, 4
SCHEMA = Schema(
    NestedField(INT, "i", IntegerType()),
    NestedField(LONG, "l", LongType()),
    NestedField(TIME, "t", TimestampType()),
    NestedField(TEXT, "s", StringType()),
)
INTS, LONGS = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
WIDTHS = st.integers(1, 1_000)
SMALL = st.integers(-1_000_000, 1_000_000)


@dataclass(frozen=True)
class Summary:
    """What a manifest list says of one partition field."""

    lower_bound: bytes | None
    upper_bound: bytes | None


def _of(source: int, transform: Transform) -> WrappedValues:
    return WrappedValues(SCHEMA, PartitionSpec(PartitionField(source, 1000, transform, "p")))


def _truncated(value: int, width: int) -> int:
    """Truncate towards minus infinity, as the specification says."""
    return value // width * width


def _wrapped(value: int, bits: int) -> int:
    """Return what an integer of so many bits holds."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


@pytest.mark.parametrize(("source", "bits"), [(INT, 32), (LONG, 32), (LONG, 64)])
@given(data=st.data(), width=WIDTHS)
def test_truncated_value_that_wrapped_is_marked(
    source: int, bits: int, width: int, data: st.DataObject
) -> None:
    """A column of longs may have been one of ints when a file was written."""
    smallest = -(1 << bits - 1)
    value = data.draw(st.integers(smallest, smallest + 2 * width))
    exact = _truncated(value, width)
    stored = _wrapped(exact, bits)

    if stored != exact:
        assert _of(source, TruncateTransform(width)).among([stored])


@given(value=SMALL, width=WIDTHS)
def test_truncated_value_that_fits_is_not_marked(value: int, width: int) -> None:
    assert not _of(LONG, TruncateTransform(width)).among([_truncated(value, width)])


@given(micros=LONGS)
@example(-(1 << 63))
@example((1 << 63) - 1)
@example(0)
def test_hour_that_an_int_does_not_hold_is_marked_once_it_wrapped(micros: int) -> None:
    hours = micros // 3_600_000_000
    stored = _wrapped(hours, 32)

    if stored != hours:
        assert _of(TIME, HourTransform()).among([stored])


@given(hours=st.integers(-20_000_000, 80_000_000))
def test_hour_of_the_calendar_is_not_marked(hours: int) -> None:
    """From before the year 1 to after 9999."""
    assert not _of(TIME, HourTransform()).among([hours])


@given(values=st.lists(INTS, min_size=1, max_size=4), width=WIDTHS)
def test_manifest_with_a_marked_value_is_marked(values: list[int], width: int) -> None:
    for wrapped in (_of(INT, TruncateTransform(width)), _of(TIME, HourTransform())):
        bounds = (each.to_bytes(4, "little", signed=True) for each in (min(values), max(values)))
        marked = wrapped.within([Summary(*bounds)])

        assert marked or not any(wrapped.among([value]) for value in values)


@pytest.mark.parametrize(
    ("source", "transform"),
    [
        (LONG, IdentityTransform()),
        (LONG, BucketTransform(16)),
        (TIME, DayTransform()),
        (TEXT, TruncateTransform(3)),
        (99, TruncateTransform(3)),
    ],
    ids=["identity", "bucket", "day", "text", "dropped column"],
)
def test_other_partition_fields_never_wrap(
    source: int,
    transform: Transform,
) -> None:
    found = _of(source, transform)

    assert not found.among([(1 << 31) - 2])
    assert not found.among(["text"])
    assert not found.within(None)


def test_manifest_without_bounds_is_not_marked() -> None:
    assert not _of(INT, TruncateTransform(10)).within([Summary(None, None)])
