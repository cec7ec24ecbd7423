"""How heavy a piece is: by bytes, rows or opening cost, whichever is most (ICE-5.4, 5.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from tidegate.model.plan import Piece

    Refs = tuple[Sequence[Mapping[str, Any]], ...]

ASSUMED_VARIABLE_WIDTH = 32
"""Bytes assumed for a text, a binary, a list or a map, of which the schema does not tell."""
TERMS = ("bytes", "rows", "opening")
"""What a weight may be made of, in the order in which ties are decided."""


@dataclass(frozen=True)
class Scale:
    """What pieces are weighed with."""

    row_width: int
    """Bytes that one row takes in memory."""
    open_cost: int
    """What opening a file costs, in bytes."""
    _deletes: dict[tuple[int, ...], tuple[Refs, int, int]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What the delete files of pieces have in bytes, and how many they are, by their lists."""

    def load(self, piece: Piece) -> tuple[int, int, int]:
        """Weigh a piece by each of `TERMS`: 13 million rows in 3.5 MB are not light (ICE-7.6)."""
        lists = delete_lists(piece)
        size_bytes, files = self._delete_load(lists) if lists else (0, 0)
        rows = piece.rows * self.row_width
        return piece.size_bytes + size_bytes, rows, self.open_cost * (1 + files)

    def weight(self, piece: Piece) -> int:
        """Return the heaviest part of a piece's load."""
        return max(self.load(piece))

    def weigh(self, pieces: Iterable[Piece]) -> tuple[int, str]:
        """Return the weight of several pieces, and which term makes most of it."""
        shares = [0] * len(TERMS)
        for piece in pieces:
            load = self.load(piece)
            heaviest = max(load)
            shares[load.index(heaviest)] += heaviest
        return sum(shares), TERMS[shares.index(max(shares))]

    def _delete_load(self, lists: Refs) -> tuple[int, int]:
        """Add up delete files; a window may have as many pairs of files as data times deletes."""
        key = tuple(map(id, lists))
        if key not in self._deletes:
            refs = distinct_refs(lists)
            # The lists are kept, so that their ids are not given to others.
            self._deletes[key] = lists, sum(map(delete_bytes, refs)), len(refs)
        _, size_bytes, files = self._deletes[key]
        return size_bytes, files


def delete_lists(piece: Piece) -> Refs:
    """Return the lists of delete files and vectors that apply to a piece, as its source made them.

    Of a piece with two states they are those of both. Pieces often share them.
    """
    details = piece.details
    change = details.get("change")
    if change is None:
        found = details.get("deletes")
        return (found,) if found else ()
    return tuple([refs for refs in (change["before"], change["after"]) if refs])


def distinct_refs(lists: Iterable[Sequence[Mapping[str, Any]]]) -> Collection[Mapping[str, Any]]:
    """List delete files and vectors, each once."""
    return {(ref["path"], ref["offset"]): ref for refs in lists for ref in refs}.values()


def delete_bytes(ref: Mapping[str, Any]) -> int:
    """Return what is read of a delete file: of a vector its blob, else the whole file (ICE-5.4)."""
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
