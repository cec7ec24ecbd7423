"""Find partition values that overflowed their type, so that they cannot be used as bounds.

Java's integers wrap: `truncate[10]` of the smallest int is near the largest one, and the hours of a
time 290,000 years ago are in the future. Such a value can be compared for equality, but not for
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.transforms import HourTransform, TruncateTransform
from pyiceberg.types import IntegerType, LongType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.manifest import PartitionFieldSummary
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

_INT_BITS, _LONG_BITS = 32, 64
_HOUR_MICROSECONDS = 3_600_000_000
_HOURS = (1 << _LONG_BITS - 1) // _HOUR_MICROSECONDS
"""From 1970 to either end of what microseconds in 64 bits can say; more than an int holds."""

Ranges = tuple[tuple[float, float], ...]
"""Lower and upper bounds, both included."""


class WrappedValues:
    """The partition values of one spec that may have wrapped."""

    def __init__(self, schema: Schema, spec: PartitionSpec) -> None:
        self._ranges = [_ranges(part, _source(schema, part)) for part in spec.fields]
        self._any = any(self._ranges)

    def among(self, partition: Sequence[Any]) -> bool:
        """Return whether one of a file's values may have wrapped."""
        return self._any and any(
            _overlap(ranges, value, value)
            for ranges, value in zip(self._ranges, partition, strict=False)
            if ranges and isinstance(value, int)
        )

    def within(self, summaries: Sequence[PartitionFieldSummary] | None) -> bool:
        """Return whether one of a manifest's values may have wrapped, as far as its bounds tell."""
        return self._any and any(
            _overlap(ranges, _number(summary.lower_bound), _number(summary.upper_bound))
            for ranges, summary in zip(self._ranges, summaries or (), strict=False)
            if ranges and summary.lower_bound and summary.upper_bound
        )


def _source(schema: Schema, part: PartitionField) -> IcebergType | None:
    if part.source_id not in schema.field_ids:
        return None
    return schema.find_type(part.source_id)


def _ranges(part: PartitionField, source: IcebergType | None) -> Ranges:
    """Return the values of a partition field that may have wrapped."""
    if isinstance(part.transform, HourTransform):
        last = (1 << _INT_BITS) - _HOURS - 1
        return ((float("-inf"), -last), (last, float("inf")))
    if not isinstance(part.transform, TruncateTransform):
        return ()
    # A column of longs may have been one of ints when a file was written.
    bits = (_INT_BITS, _LONG_BITS) if isinstance(source, LongType) else (_INT_BITS,)
    if not isinstance(source, IntegerType | LongType):
        return ()
    found = (_truncated(part.transform.width, each) for each in bits)
    return tuple((value, value) for value in found if value is not None)


def _truncated(width: int, bits: int) -> int | None:
    """Return the truncated smallest number; no other number wraps or is truncated to it.

    Returns:
        None if nothing wraps, because the smallest number is a multiple of the width.
    """
    smallest = -(1 << bits - 1)
    rest = smallest % width
    return smallest - rest + (1 << bits) if rest else None


def _overlap(ranges: Ranges, lower: int, upper: int) -> bool:
    return any(low <= upper and lower <= high for low, high in ranges)


def _number(bound: bytes) -> int:
    return int.from_bytes(bound, "little", signed=True)
