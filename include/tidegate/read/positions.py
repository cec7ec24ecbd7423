"""Find the rows of a batch at deleted positions (ICE-6.5). Reads no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidegate.physical.arrays import Flags, boolean_column, integer_column, integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidegate.physical import RowGroup


def are_at(positions: pa.Int64Array, start: int, rows: int) -> pa.BooleanArray | None:
    """Return a mask of the rows of a range that are at one of the positions.

    Args:
        positions: ascending, unique.
        start: position of the first row.
        rows: the number of rows in the range.

    Returns:
        bool[rows] without NULL; None if none is.
    """
    known = integers(positions)
    low, high = np.searchsorted(known, (start, start + rows))
    if low == high:
        return None
    found: Flags = np.zeros(rows, dtype=np.bool_)
    found[known[low:high] - start] = True
    return boolean_column(found)


def past_end(positions: pa.Int64Array | None, rows: int) -> int:
    """Count the positions that a file with a number of rows does not have (ICE-4.10)."""
    known = _known(positions)
    return len(known) - int(np.searchsorted(known, rows))


def differing(one: pa.Int64Array | None, other: pa.Int64Array | None) -> pa.Int64Array:
    """Return the positions that only one of two sets has, ascending."""
    found = np.setxor1d(_known(one), _known(other), assume_unique=True)
    return integer_column(found)


def united(sets: Sequence[pa.Int64Array]) -> pa.Int64Array:
    """Join sets of positions, each in any order and with repetitions, into one ascending set."""
    return integer_column(np.unique(np.concatenate([_known(one) for one in sets])))


def ranges_with(
    positions: pa.Int64Array, groups: Sequence[RowGroup], start: int, end: int
) -> list[tuple[int, int]]:
    """Reduce a range of rows to the row groups that contain one of the positions (ICE-3.11).

    Args:
        positions: ascending.
        groups: of the whole file, in order.
        start: first row of the range.
        end: one past its last row.

    Returns:
        (start, end) of each part, in order; adjacent row groups form one part.
    """
    bounds = np.cumsum([0, *(group.rows for group in groups)])
    lows, highs = np.maximum(bounds[:-1], start), np.minimum(bounds[1:], end)
    known = integers(positions)
    held = np.searchsorted(known, highs) > np.searchsorted(known, lows)
    ranges: list[tuple[int, int]] = []
    for low, high in zip(lows[held].tolist(), highs[held].tolist(), strict=True):
        if ranges and ranges[-1][1] == low:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return ranges


def _known(positions: pa.Int64Array | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.zeros(0, dtype=np.int64) if positions is None else integers(positions)
