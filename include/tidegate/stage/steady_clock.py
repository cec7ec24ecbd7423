"""Find out whether the clocks of a zone change between two times of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.stage.ticks import instants
from tidegate.stage.zones import SECONDS_PER_HOUR, zone_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.physical.arrays import Integers
    from tidegate.stage.zones import ZoneOffsets

_MOST_HOURS = 24 * 32
"""More than a month of any zone; clocks may change in any longer time."""


def wall_clock_is_steady(ends: pa.Array, timezone: str) -> bool:
    """Return whether wall clock never runs backward between two times.

    If clocks are put back just after midnight, one day ends twice, and the first minute of the next
    day lies between.

    Args:
        ends: the first and the last time, not NULL, of a column of partition values.
        timezone: the pipeline's zone.
    """
    return _is_naive(ends.type) or _is_steady(ends, timezone, lambda zone: zone.at_instants)


def moments_are_steady(ends: pa.Array, timezone: str) -> bool:
    """Return whether instants never run backward between two wall clock times.

    A time that the clocks skip is moved forward, past those that follow the gap (PC-T19).

    Args:
        ends: the first and the last time, not NULL, of the column of event times.
        timezone: the pipeline's zone.
    """
    return not _is_naive(ends.type) or _is_steady(ends, timezone, lambda zone: zone.at_wall_clock)


def _is_naive(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)


def _is_steady(
    ends: pa.Array,
    timezone: str,
    offsets_of: Callable[[ZoneOffsets], Callable[[Integers], Integers]],
) -> bool:
    zone = zone_offsets(timezone)
    if zone is None or not pa.types.is_temporal(ends.type):
        return True
    first, last = instants(ends, "UTC").floor(SECONDS_PER_HOUR).tolist()
    if last - first > _MOST_HOURS:
        return False
    starts = np.arange(first, last + 1, dtype=np.int64) * SECONDS_PER_HOUR
    # At the resolution of the offsets themselves: an hour with equal ends has no change.
    seconds = np.concatenate((starts, starts + SECONDS_PER_HOUR - 1))
    return len(np.unique(offsets_of(zone)(seconds))) == 1
