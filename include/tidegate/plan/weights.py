"""The weight of a piece: by bytes, rows or opening cost, whichever is most (ICE-5.4, 5.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import pyarrow as pa

    from tidegate.model.file_slice import Delta, Deltas
    from tidegate.model.plan import Piece

ASSUMED_VARIABLE_WIDTH = 32
"""Bytes assumed for a text, a binary, a list or a map, whose size the schema does not tell."""
TERMS = ("bytes", "rows", "opening")
"""The terms of a weight, in the order in which ties are decided."""


@dataclass(frozen=True)
class Scale:
    """The parameters of weighing pieces."""

    row_width: int
    """Bytes that one row takes in memory."""
    open_cost: int
    """What opening a file costs, in bytes."""
    _known: dict[tuple[int, ...], tuple[tuple[Deltas, ...], int, int]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """The bytes and the number of deltas, by the ids of their lists."""

    def load(self, piece: Piece) -> tuple[int, int, int]:
        """Return the weight of a piece by each of `TERMS`: few bytes may be many rows (ICE-7.6)."""
        lists = piece.slice.delta_lists
        size_bytes, files = self._delta_load(lists) if lists else (0, 0)
        rows = piece.rows * self.row_width
        return piece.size_bytes + size_bytes, rows, self.open_cost * (1 + files)

    def weight(self, piece: Piece) -> int:
        """Return the weight of a piece, which is its largest term."""
        return max(self.load(piece))

    def weigh(self, pieces: Iterable[Piece]) -> tuple[int, str]:
        """Return the weight of several pieces, and its largest term."""
        shares = [0] * len(TERMS)
        for piece in pieces:
            load = self.load(piece)
            heaviest = max(load)
            shares[load.index(heaviest)] += heaviest
        return sum(shares), TERMS[shares.index(max(shares))]

    def _delta_load(self, lists: tuple[Deltas, ...]) -> tuple[int, int]:
        """Add up deltas; a window may have as many pairs as data files times deltas."""
        key = tuple(map(id, lists))
        if key not in self._known:
            deltas = distinct_deltas(lists)
            # The lists are kept, so that their ids are not reused.
            self._known[key] = lists, sum(delta.size_bytes for delta in deltas), len(deltas)
        _, size_bytes, files = self._known[key]
        return size_bytes, files


def distinct_deltas(lists: Iterable[Deltas]) -> Collection[Delta]:
    """List deltas, each once."""
    return {delta.key: delta for deltas in lists for delta in deltas}.values()


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
