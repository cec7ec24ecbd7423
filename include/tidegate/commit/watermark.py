"""Move the watermark of a pipeline by the rows of one window; it never goes back.

The bound is the largest event time that counts, minus `lateness`. Event times beyond the clock plus
`future_tolerance` were left out while reading: a single row of the year 2099 must not open the
gate. A pipeline has one source, so its watermark is that source's (PC-W01).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tidegate.model.message import EventTimes
from tidegate.model.watermark import WatermarkStep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tidegate.config import EventTimeConfig


def advance(
    said: EventTimeConfig | None,
    previous: WatermarkStep | None,
    event_times: EventTimes,
    *,
    rows_read: int,
    now: datetime,
    is_unread: Callable[[], bool],
) -> WatermarkStep:
    """Return the watermark after one window, or after a look that found nothing new.

    Args:
        said: lateness and idleness of the pipeline; None: it counts no event times.
        previous: the step of the previous announce; None for the first.
        event_times: those of the window's rows; `EventTimes()` if there are none.
        rows_read: the number of rows read; with 0 the source stays silent.
        now: aware UTC clock of the announce.
        is_unread: tells whether the source has changes that no window took in, this one included;
            asked only if the source has been silent for too long. Such a source is not idle: the
            changes may have rows of any time.

    Returns:
        The step with everything that its value is computed from (PC-W10). The value is never lower
        than the previous one, unless that was measured in something else (PC-W04), and None until
        an event time has counted (PC-W09).
    """
    basis = said.basis if said else previous.basis if previous else None
    before = previous.value if previous and previous.counts_for(basis) else None
    last_data_at = now if rows_read else previous.last_data_at if previous else None
    idle = is_idle(said, last_data_at, now) and not is_unread()
    value = max(_candidates(said, before, event_times, now if idle else None), default=None)
    if value is None and previous is not None:
        # What it was measured in before counts as former until there is another value.
        value, basis = previous.value, previous.basis if previous.value else basis
    return WatermarkStep(
        previous=before,
        largest_event_time=event_times.largest,
        lateness_seconds=said.lateness.total_seconds() if said else 0.0,
        future_rows=event_times.future,
        idle=idle,
        value=value,
        last_data_at=last_data_at,
        basis=basis,
    )


def commit_times(commit: datetime, said: EventTimeConfig, now: datetime) -> EventTimes:
    """Use the time of the last commit that was read in place of event times (PC-W03).

    Args:
        commit: time of the last commit of the window.
        said: how far in the future a time still counts.
        now: aware UTC clock of the announce.
    """
    counts = commit <= now + said.future_tolerance
    return EventTimes(largest=commit if counts else None, future=0 if counts else 1)


def _candidates(
    said: EventTimeConfig | None,
    before: datetime | None,
    event_times: EventTimes,
    idle_at: datetime | None,
) -> Iterator[datetime]:
    if before is not None:
        yield before
    if said is None:
        return
    if event_times.largest is not None:
        # Nothing is earlier than the calendar's first day.
        with suppress(OverflowError):
            yield event_times.largest - said.lateness
    if idle_at is not None and said.idle_timeout is not None and said.when_idle == "advance":
        yield idle_at - said.idle_timeout


def is_idle(said: EventTimeConfig | None, last_data_at: datetime | None, now: datetime) -> bool:
    """Return whether the source had no rows for `idle_timeout` (PC-W07).

    A source that never had a row is not idle: there is nothing to publish yet.
    """
    if said is None or said.idle_timeout is None or last_data_at is None:
        return False
    return now - last_data_at >= said.idle_timeout
