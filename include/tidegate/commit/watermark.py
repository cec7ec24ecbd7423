"""Move the watermark of a pipeline by what one window brought; it never goes back.

The bound is the largest event time that counts, minus `lateness`. Event times beyond the clock plus
`future_tolerance` were left out while reading: one row of the year 2099 must not open the gate. A
pipeline has one source, so that its watermark is that source's (PC-W01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.watermark import WatermarkStep

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.config import EventTimeConfig
    from tidegate.model.message import EventTimes


def advance(
    previous: WatermarkStep | None, read: EventTimes, said: EventTimeConfig, now: datetime
) -> WatermarkStep:
    """Work out the watermark after one window, or after a look that found nothing new.

    Args:
        previous: the step of the announce before; None for the first.
        read: event times of the rows that the window brought; `EventTimes()` if there is none.
        said: lateness and idleness of the pipeline.
        now: aware UTC clock of the announce.

    Returns:
        The step with everything that led to its value (PC-W10). The value is never lower than the
        one before (PC-W04), and None until an event time has counted (PC-W09).
    """
    before = previous.value if previous else None
    brought = bool(read.largest is not None or read.missing or read.future)
    last_data_at = now if brought else previous.last_data_at if previous else None
    idle = is_idle(last_data_at, said, now)
    candidates = [] if before is None else [before]
    if read.largest is not None:
        candidates.append(read.largest - said.lateness)
    if idle and said.idle_timeout is not None and said.when_idle == "advance":
        candidates.append(now - said.idle_timeout)
    return WatermarkStep(
        previous=before,
        largest_event_time=read.largest,
        lateness_seconds=said.lateness.total_seconds(),
        future_rows=read.future,
        idle=idle,
        value=max(candidates, default=None),
        last_data_at=last_data_at,
    )


def is_idle(last_data_at: datetime | None, said: EventTimeConfig, now: datetime) -> bool:
    """Say whether the source has brought nothing for `idle_timeout` (PC-W07).

    A source that never brought a row is not idle: there is nothing to wait for yet.
    """
    if said.idle_timeout is None or last_data_at is None:
        return False
    return now - last_data_at >= said.idle_timeout
