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
"""What decoding and comparing raise where a bound was written under another type.

A date that became a timestamp has bounds of four bytes; such a bound says nothing.
"""


def order_of(kind: PrimitiveType) -> str:
    """Name what bounds of a type compare with: those of types that are promoted to each other.

    Dates do not compare with the timestamps that they may become.
    """
    if isinstance(kind, IntegerType):
        return str(LongType())
    return f"decimals of scale {kind.scale}" if isinstance(kind, DecimalType) else str(kind)


def decode_bounds(kind: PrimitiveType, lower: bytes | None, upper: bytes | None) -> Range | None:
    """Return lower and upper bound as values that compare; None where they say nothing.

    A uuid stays bytes, which compare unsigned (ICE-4.9).
    """
    if lower is None or upper is None:
        return None
    try:
        found = from_bytes(kind, lower), from_bytes(kind, upper)
    except UNREADABLE:
        return None
    return None if None in found else found
