"""How heavy a piece is: by bytes, rows or opening cost, whichever is most (ICE-5.4, 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from tidegate.model.plan import Piece

ASSUMED_VARIABLE_WIDTH = 32
"""Bytes assumed for a text, a binary, a list or a map, of which the schema does not tell."""
TERMS = ("bytes", "rows", "opening")
"""What a weight may be made of, in the order in which ties are decided."""


class Load(NamedTuple):
    """The weight of a piece by what it is made of; in bytes."""

    bytes: int
    rows: int
    opening: int

    @property
    def weight(self) -> int:
        """The largest of the three."""
        return max(self)

    @property
    def term(self) -> str:
        """Which of the three is the largest."""
        return TERMS[self.index(self.weight)]


@dataclass(frozen=True)
class Scale:
    """What pieces are weighed with."""

    row_width: int
    """Bytes that one row takes in memory."""
    open_cost: int
    """What opening a file costs, in bytes."""

    def load(self, piece: Piece) -> Load:
        """Weigh a piece: 13 million rows in 3.5 MB are not light (ICE-7.6)."""
        deletes = delete_refs(piece)
        return Load(
            piece.size_bytes + sum(map(delete_bytes, deletes)),
            piece.rows * self.row_width,
            self.open_cost * (1 + len(deletes)),
        )

    def weight(self, piece: Piece) -> int:
        """Give the deciding part of a piece's load."""
        return max(self.load(piece))

    def deciding(self, pieces: Iterable[Piece]) -> str:
        """Say which term makes most of the weight of several pieces."""
        shares = dict.fromkeys(TERMS, 0)
        for piece in pieces:
            load = self.load(piece)
            shares[load.term] += load.weight
        return max(TERMS, key=shares.__getitem__)


def delete_refs(piece: Piece) -> tuple[Mapping[str, Any], ...]:
    """List the delete files and vectors that apply to a piece, each once.

    Of a piece with two states they are those of both.
    """
    change = piece.details.get("change")
    if change is None:
        return tuple(piece.details.get("deletes", ()))
    both = (*(change["before"] or ()), *(change["after"] or ()))
    return tuple({(ref["path"], ref["offset"]): ref for ref in both}.values())


def delete_bytes(ref: Mapping[str, Any]) -> int:
    """Give what is read of a delete file: of a vector its blob, else the whole file (ICE-5.4)."""
    return int(ref["length"] if ref["size"] is None else ref["size"])


def row_width(schema: pa.Schema) -> int:
    """Estimate how many bytes one row of a schema takes in memory, at least 1 (ICE-5.5)."""
    return max(1, sum(_width(column.type) for column in schema))


def _width(kind: pa.DataType) -> int:
    storage = getattr(kind, "storage_type", kind)
    if storage.num_fields and str(storage).startswith("struct"):
        return sum(_width(storage.field(index).type) for index in range(storage.num_fields))
    try:
        return (int(storage.bit_width) + 7) // 8
    except ValueError:
        return ASSUMED_VARIABLE_WIDTH
