"""Decode the bounds that manifests have of columns and partitions."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyiceberg.conversions import from_bytes
from pyiceberg.types import DecimalType, IntegerType, LongType

if TYPE_CHECKING:
    from pyiceberg.types import PrimitiveType

    from tidegate.source.iceberg.manifests.overlaps import Range

UNREADABLE = (struct.error, ValueError, TypeError)
"""The errors of decoding and comparing a bound that was written with another type.

A date that became a timestamp has bounds of four bytes, which cannot be used.
"""


def order_of(kind: PrimitiveType) -> str:
    """Return the group of types whose bounds can be compared: those promoted to each other.

    Dates cannot be compared with the timestamps that they may become.
    """
    if isinstance(kind, IntegerType):
        return str(LongType())
    return f"decimals of scale {kind.scale}" if isinstance(kind, DecimalType) else str(kind)


def decode_bounds(kind: PrimitiveType, lower: bytes | None, upper: bytes | None) -> Range | None:
    """Return lower and upper bound as comparable values; None if they cannot be used.

    A uuid stays bytes, which compare unsigned (ICE-4.9).
    """
    if lower is None or upper is None:
        return None
    try:
        found = from_bytes(kind, lower), from_bytes(kind, upper)
    except UNREADABLE:
        return None
    return None if None in found else found
