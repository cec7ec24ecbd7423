"""Cut files that are too large for one split: at split offsets, between row groups, or by rows.

Every physical row of a file is in exactly one part. Footers are read only if the manifest does not
have enough (ICE-5.2, 5.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from tidegate.model.plan import Piece
from tidegate.physical import RowGroup

if TYPE_CHECKING:
    from tidegate.plan.weights import Scale

_THREADS = 8
_EVERYTHING = 1 << 62


RowGroups = Callable[[Piece], Sequence[RowGroup]]
Uncut = Callable[[Piece], bool]
"""Tells whether a file that is too large for one part is left whole all the same."""


def never(_: Piece) -> bool:
    """Leave no file whole that is too large."""
    return False


@dataclass(frozen=True)
class CutLimits:
    """The limits of one part."""

    target_size: int
    max_rows: int
    scale: Scale

    def rows_weigh(self, rows: int) -> int:
        """Return the weight of rows in memory."""
        return rows * self.scale.row_width

    def is_dense(self, rows: int, size_bytes: int) -> bool:
        """Return whether rows are worth a cut inside a row group.

        The reader of a later range also decodes the rows before it, which costs less than opening
        another file only if many rows have few bytes.
        """
        if rows > self.max_rows:
            return True
        return self.rows_weigh(rows) > self.target_size and size_bytes <= self.scale.open_cost


class _Way(Enum):
    """How a piece is cut into parts."""

    WHOLE = "as it is"
    ROWS = "by rows: the manifest says that it is one row group"
    OFFSETS = "at the manifest's split offsets"
    FOOTER = "as the footer says"


def cut(
    pieces: Iterable[Piece], row_groups: RowGroups, limits: CutLimits, uncut: Uncut = never
) -> Iterator[Piece]:
    """Cut pieces that are too large, keeping the order; the others are passed on.

    Args:
        pieces: whole files; those that do not tell their rows have a range of bytes.
        row_groups: reads a footer; called in parallel for several files.
        limits: no part has more rows than `max_rows`, nor more weight than `target_size` unless it
            cannot be cut further.
        uncut: exempts files from that; also called in parallel for several files.
    """
    ways = [(piece, _way(piece, limits)) for piece in pieces]
    with ThreadPoolExecutor(_THREADS) as pool:
        large = [piece for piece, way in ways if way is not _Way.WHOLE]
        kept = {
            id(piece) for piece, whole in zip(large, pool.map(uncut, large), strict=True) if whole
        }
        ways = [(piece, _Way.WHOLE if id(piece) in kept else way) for piece, way in ways]
        unknown = [piece for piece, way in ways if way is _Way.FOOTER]
        footers = dict(
            zip((id(piece) for piece in unknown), pool.map(row_groups, unknown), strict=True)
        )
    for piece, way in ways:
        if way is _Way.WHOLE:
            yield piece
        elif way is _Way.ROWS:
            yield from _ranges(piece, limits)
        elif way is _Way.OFFSETS:
            yield from _byte_ranges(piece, _offsets(piece))
        else:
            yield from _parts(piece, footers[id(piece)], limits)


def _way(piece: Piece, limits: CutLimits) -> _Way:
    if piece.byte_range is not None:
        # It does not tell its rows, so it cannot be cut.
        return _Way.WHOLE
    if piece.rows <= limits.max_rows and _own_weight(piece, limits) <= limits.target_size:
        return _Way.WHOLE
    offsets = _offsets(piece)
    if len(offsets) == 1:
        return _Way.ROWS if limits.is_dense(piece.rows, piece.size_bytes) else _Way.WHOLE
    if not offsets or piece.rows > limits.max_rows or not _tells_where_groups_begin(piece):
        return _Way.FOOTER
    dense = any(
        limits.is_dense(part.rows, part.size_bytes) for part in _byte_ranges(piece, offsets)
    )
    return _Way.FOOTER if dense else _Way.OFFSETS


def _own_weight(piece: Piece, limits: CutLimits) -> int:
    """Return the weight of a piece without its deletes, which a cut does not reduce."""
    return max(piece.size_bytes, limits.rows_weigh(piece.rows))


def _tells_where_groups_begin(piece: Piece) -> bool:
    # Arrow does not tell at which byte an ORC stripe or an Avro block begins.
    return piece.slice.file_format == "parquet"


def _offsets(piece: Piece) -> Sequence[int]:
    """Return the split offsets; none unless they ascend strictly inside the file (ICE-5.2)."""
    offsets = piece.slice.offsets
    if not offsets or offsets[0] < 0 or offsets[-1] >= max(piece.size_bytes, 1):
        return ()
    return offsets if all(left < right for left, right in pairwise(offsets)) else ()


def _byte_ranges(piece: Piece, offsets: Sequence[int]) -> Iterator[Piece]:
    """Cut at offsets; rows are apportioned by bytes (ICE-5.4)."""
    bounds = [0, *offsets[1:], piece.size_bytes]
    rows_before = [piece.rows * bound // piece.size_bytes for bound in bounds]
    for (start, end), (first, last) in zip(pairwise(bounds), pairwise(rows_before), strict=True):
        # Manifests are known to have wrong lengths: no row group may be after the last part.
        behind = _EVERYTHING if end == piece.size_bytes else end
        yield replace(piece, rows=last - first, size_bytes=end - start, byte_range=(start, behind))


def _parts(piece: Piece, groups: Sequence[RowGroup], limits: CutLimits) -> Iterator[Piece]:
    if not any(group.rows for group in groups):
        # What became of its rows may be what the window is read for.
        yield piece
        return
    start = 0
    for group in groups:
        whole = replace(piece, row_start=start, rows=group.rows, size_bytes=group.size_bytes)
        if group.rows > 0:
            yield from _ranges(whole, limits)
        start += group.rows


def _ranges(group: Piece, limits: CutLimits) -> Iterator[Piece]:
    """Cut a row group that has too many rows into ranges of nearly equal size."""
    if not limits.is_dense(group.rows, group.size_bytes):
        yield group
        return
    by_rows = -(-group.rows // limits.max_rows)
    by_weight = -(-limits.rows_weigh(group.rows) // limits.target_size)
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
    """Join consecutive parts of one file into one piece (ICE-5.6)."""
    current: Piece | None = None
    for piece in pieces:
        joined = _joined(current, piece) if current is not None else None
        if joined is None and current is not None:
            yield current
        current = joined or piece
    if current is not None:
        yield current


def _joined(current: Piece, piece: Piece) -> Piece | None:
    """Return the joined piece; None if one does not continue the other."""
    if current.slice != piece.slice:
        return None
    made = replace(
        current,
        rows=current.rows + piece.rows,
        size_bytes=current.size_bytes + piece.size_bytes,
    )
    if current.byte_range is None or piece.byte_range is None:
        follows = current.byte_range is piece.byte_range and current.row_end == piece.row_start
        return made if follows else None
    (first, end), (start, last) = current.byte_range, piece.byte_range
    return replace(made, byte_range=(first, last)) if end == start else None
