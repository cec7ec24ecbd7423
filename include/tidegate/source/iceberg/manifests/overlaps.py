"""Find which of many ranges overlap one, for any values that can be compared.

Ranges are numbered in the given order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Range = tuple[Any, Any]
"""Lower and upper bound, both included."""


class Overlaps:
    """Ranges for look-ups, sorted once; a range that is None overlaps everything."""

    def __init__(self, ranges: Sequence[Range | None]) -> None:
        known = [index for index, found in enumerate(ranges) if found is not None]
        pairs = [found for found in ranges if found is not None]
        self._lowers = sorted(lower for lower, _ in pairs)
        self._uppers = sorted(upper for _, upper in pairs)
        # Ranks represent the bounds, so that look-ups compare small numbers, whatever the type.
        self._lower_ranks = np.full(len(ranges), -1, np.int64)
        self._upper_ranks = np.full(len(ranges), len(pairs), np.int64)
        self._lower_ranks[known] = [bisect_left(self._lowers, lower) for lower, _ in pairs]
        self._upper_ranks[known] = [bisect_left(self._uppers, upper) for _, upper in pairs]

    def apart_from(self, lower: Any, upper: Any, first: int = 0) -> NDArray[np.bool_] | None:
        """Return a mask of the ranges from number `first` on that do not overlap `[lower, upper]`.

        Returns:
            bool[len - first]; None if all overlap, which costs two searches only.
        """
        starts_behind = bisect_right(self._lowers, upper)
        ends_before = bisect_left(self._uppers, lower)
        if starts_behind == len(self._lowers) and ends_before == 0:
            return None
        apart = self._lower_ranks[first:] >= starts_behind
        apart |= self._upper_ranks[first:] < ends_before
        return apart
