"""Decode the bounds that manifests have of columns and partitions."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyiceberg.conversions import from_bytes

if TYPE_CHECKING:
    from pyiceberg.types import PrimitiveType

    from tidegate.source.iceberg.overlaps import Range

UNREADABLE = (struct.error, ValueError, TypeError)
"""What decoding and comparing raise where a bound was written under another type.

A date that became a timestamp has bounds of four bytes; such a bound says nothing.
"""


def decode_bounds(kind: PrimitiveType, lower: bytes | None, upper: bytes | None) -> Range | None:
    """Give lower and upper bound as values that compare; None where they say nothing.

    A uuid stays bytes, which compare unsigned (ICE-4.9).
    """
    if lower is None or upper is None:
        return None
    try:
        found = from_bytes(kind, lower), from_bytes(kind, upper)
    except UNREADABLE:
        return None
    return None if None in found else found
