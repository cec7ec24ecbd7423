"""Instants of a source and the ranges between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class Instant(Value):
    """A completed change point of the source: an Iceberg snapshot, a listing of files."""

    id: str
    """The id in the source, where it is unique."""
    time: datetime
    """Its commit time, or the time that `source.instant_time` names; aware, in UTC."""
    sequence_number: int | None = field(default=None, compare=False, metadata={SPARSE: True})
    """The commit's number in the table, if the format counts them: it orders instants even when the
    source no longer knows them (ICE-2.5)."""


@dataclass(frozen=True)
class InstantRange(Value):
    """The changes after one instant up to and including another, in the source's own order."""

    start_exclusive: Instant | None
    """None: from the beginning, which reads the whole table as of the end."""
    end_inclusive: Instant

    def __str__(self) -> str:
        start = self.start_exclusive.id if self.start_exclusive else "beginning"
        return f"({start}, {self.end_inclusive.id}]"


@dataclass(frozen=True)
class DataInterval(Value):
    """The time span that a run was scheduled for (Airflow's term), without its end."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"[{self.start:%Y-%m-%dT%H:%M}, {self.end:%Y-%m-%dT%H:%M})"

    def covers(self, moment: datetime) -> bool:
        """Return whether a time is in the interval."""
        return self.start <= moment < self.end


def time_in_zone(text: str, zone: str) -> datetime | None:
    """Read an ISO date or time; without an offset it is wall clock time in a zone.

    Returns:
        The time in UTC; None for any other text, and if UTC has no such time.
    """
    local = ZoneInfo(zone)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=local)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def aware_time(text: str) -> datetime | None:
    """Read an ISO time that names its zone.

    Returns:
        The time in UTC; None for any other text, and if UTC has no such time.
    """
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def local_time(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return an instant as wall clock time of a zone.

    On the calendar's first and last day it is returned as it is: event times may be that far off,
    and have to be shown all the same.
    """
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment
