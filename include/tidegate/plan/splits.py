"""Make the splits of a plan: order, cut, weigh, pack, divide into sub-splits of bounded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.plan import WHOLE_FILE, Piece, Split, SubSplit
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan.cuts import CutLimits, RowGroups, Uncut, cut, join_adjacent, never
from tidegate.plan.order import ordered
from tidegate.plan.packing import pack
from tidegate.plan.weights import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.config import SplitConfig

_SMALLEST_TARGET = 48 << 20
"""Less is not worth a task, a message and part files of its own: with 16 MiB, staging the five
appends of the benchmarks took a sixth longer."""


def plan_splits(
    units: Iterable[Piece],
    row_groups: RowGroups,
    split: SplitConfig,
    row_width: int,
    parallelism: int,
    uncut: Uncut = never,
) -> tuple[Split, ...]:
    """Turn the whole files of a window into splits; equal inputs have equal splits and ids.

    Args:
        units: whole files in source order.
        row_groups: reads a file's footer; called only for files that may have to be cut.
        split: the pipeline's `source.split`, or what `with_table_defaults` made of it.
        row_width: bytes that one row takes in memory, from `row_width(schema)`.
        parallelism: how many splits can be read at once; with fewer splits the target is lowered
            (ICE-5.7).
        uncut: tells which files are not cut, however large, because they are not decoded.

    Returns:
        Splits in the order of their first files; every physical row is in exactly one sub-split.

    Raises:
        StatsMissing: see `ordered`.
    """
    files = ordered(units, split.order)
    scale = Scale(row_width, split.open_cost)
    target = adapted_target(files, scale, split.target_size, parallelism)
    parts = cut(files, row_groups, CutLimits(target, split.max_rows, scale), uncut)
    # A requested order must not be undone by filling earlier bins (ICE-5.9).
    lookback = split.lookback if split.order == "none" else 1
    return tuple(
        _split(packed, split.max_rows, scale)
        for packed in pack(parts, scale.weight, target, lookback)
    )


def plan_one_split(units: Iterable[Piece], split: SplitConfig, row_width: int) -> tuple[Split, ...]:
    """Assign all files to one reader, which alone can count all rows (ICE-5.13).

    Args:
        units: whole files in source order.
        split: as for `plan_splits`.
        row_width: as for `plan_splits`.
    """
    files = ordered(units, split.order)
    every_row = sum(piece.rows for piece in files)
    return (_split(files, every_row, Scale(row_width, split.open_cost)),) if files else ()


def adapted_target(pieces: Iterable[Piece], scale: Scale, target: int, parallelism: int) -> int:
    """Lower the target if it would leave workers idle; never raise it (ICE-5.7)."""
    share = sum(map(scale.weight, pieces)) // max(parallelism, 1)
    return min(target, max(share, min(_SMALLEST_TARGET, target), 1))


def _split(pieces: Sequence[Piece], max_rows: int, scale: Scale) -> Split:
    weight, term = scale.weigh(pieces)
    return Split(tuple(_sub_splits(pieces, max_rows)), weight, term, merged_bounds(pieces))


def merged_bounds(pieces: Iterable[Piece]) -> TimeBounds | None:
    """Join the event-time bounds of pieces; None if one of them has none (ICE-5.10)."""
    found = [piece.event_times for piece in pieces]
    known = [bounds for bounds in found if bounds is not None]
    if not known or len(known) < len(found):
        return None
    return TimeBounds.around(known)


def _sub_splits(pieces: Sequence[Piece], max_rows: int) -> Iterator[SubSplit]:
    current: list[Piece] = []
    rows = 0
    for piece in pieces:
        if current and (rows + piece.rows > max_rows or _guesses(current[-1], piece)):
            yield SubSplit(tuple(join_adjacent(current)))
            current, rows = [], 0
        current.append(piece)
        rows += piece.rows
    if current:
        yield SubSplit(tuple(join_adjacent(current)))


def _guesses(last: Piece, piece: Piece) -> bool:
    """Return whether two pieces must not share a sub-split, because their rows are guessed.

    Parts of one file may, because it has no more than `max_rows` altogether.
    """
    guessed = _is_guessed_part(last) or _is_guessed_part(piece)
    return guessed and last.slice != piece.slice


def _is_guessed_part(piece: Piece) -> bool:
    # Whole files that do not tell their rows may be larger than `max_rows` by themselves.
    return piece.byte_range is not None and piece.byte_range != WHOLE_FILE
