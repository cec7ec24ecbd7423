"""How heavy a piece is: by bytes, rows or opening cost, whichever is most (ICE-5.4, 5.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.plan import Piece

ASSUMED_VARIABLE_WIDTH = 32
"""Bytes assumed for a text, a binary, a list or a map, of which the schema does not tell."""


def row_width(schema: pa.Schema) -> int:
    """Estimate how many bytes one row of a schema takes in memory, at least 1."""
    return max(1, sum(_width(column.type) for column in schema))


def _width(kind: pa.DataType) -> int:
    storage = getattr(kind, "storage_type", kind)
    if storage.num_fields and str(storage).startswith("struct"):
        return sum(_width(storage.field(index).type) for index in range(storage.num_fields))
    try:
        return (int(storage.bit_width) + 7) // 8
    except ValueError:
        return ASSUMED_VARIABLE_WIDTH


def piece_weight(piece: Piece, width: int, open_cost: int) -> int:
    """Weigh a piece in bytes: 13 million rows in 3.5 MB are not light (ICE-7.6)."""
    return max(piece.size_bytes, piece.rows * width, open_cost)
