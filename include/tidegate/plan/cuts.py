"""Cut what is too much for one split: between row groups, by rows inside one (ICE-5.2, 5.3).

Every physical row of a file ends in exactly one part. Footers are read only where a cut is
possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

from tidegate.model.plan import Piece
from tidegate.physical import RowGroup
from tidegate.plan.weights import piece_weight

_THREADS = 8


RowGroups = Callable[[Piece], Sequence[RowGroup]]


@dataclass(frozen=True)
class Limits:
    """What one part may have."""

    target_size: int
    max_rows: int
    open_cost: int
    row_width: int


def cut(pieces: Iterable[Piece], row_groups: RowGroups, limits: Limits) -> Iterator[Piece]:
    """Cut what is too large, keeping the order; the rest passes as it is.

    Args:
        pieces: whole files.
        row_groups: reads a footer; called side by side for several files.
        limits: no part has more rows than `max_rows`, nor more weight than `target_size` unless it
            is one
            row group.
    """
    ordered = list(pieces)
    large = [piece for piece in ordered if _is_cuttable(piece, limits)]
    with ThreadPoolExecutor(_THREADS) as pool:
        footers = dict(
            zip((id(piece) for piece in large), pool.map(row_groups, large), strict=True)
        )
    for piece in ordered:
        groups = footers.get(id(piece))
        yield from (piece,) if groups is None else _parts(piece, groups, limits)


def _is_cuttable(piece: Piece, limits: Limits) -> bool:
    if piece.rows > limits.max_rows:
        return True
    if piece_weight(piece, limits.row_width, limits.open_cost) <= limits.target_size:
        return False
    # One offset is one row group; without offsets only the footer knows (ICE-5.2).
    offsets = piece.details.get("split_offsets") or []
    is_ascending = all(left < right for left, right in pairwise(offsets))
    return not (is_ascending and len(offsets) == 1)


def _parts(piece: Piece, groups: Sequence[RowGroup], limits: Limits) -> Iterator[Piece]:
    start = 0
    for group in groups:
        whole = replace(piece, row_start=start, rows=group.rows, size_bytes=group.size_bytes)
        if group.rows > 0:
            yield from _ranges(whole, limits)
        start += group.rows


def _ranges(group: Piece, limits: Limits) -> Iterator[Piece]:
    """Cut a row group that has too many rows into ranges of nearly equal size."""
    if group.rows <= limits.max_rows:
        yield group
        return
    by_rows = -(-group.rows // limits.max_rows)
    by_weight = -(-group.rows * limits.row_width // limits.target_size)
    count = min(max(by_rows, by_weight), group.rows)
    bounds = [group.rows * index // count for index in range(count + 1)]
    bytes_before = [group.size_bytes * bound // group.rows for bound in bounds]
    for index in range(count):
        yield replace(
            group,
            row_start=group.row_start + bounds[index],
            rows=bounds[index + 1] - bounds[index],
            size_bytes=bytes_before[index + 1] - bytes_before[index],
        )


def join_adjacent(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Make one piece of parts of one file that follow each other (ICE-5.6)."""
    current: Piece | None = None
    for piece in pieces:
        if current is not None and _continues(current, piece):
            current = replace(
                current,
                rows=current.rows + piece.rows,
                size_bytes=current.size_bytes + piece.size_bytes,
            )
            continue
        if current is not None:
            yield current
        current = piece
    if current is not None:
        yield current


def _continues(current: Piece, piece: Piece) -> bool:
    return (
        current.path == piece.path
        and current.row_end == piece.row_start
        and current.details == piece.details
    )
