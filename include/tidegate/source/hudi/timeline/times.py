"""Instants of a timeline as instants of the source: their ids, and their times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import HudiInstantUnreadable
from tidegate.model.instant import Instant

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_SECONDS = 14
_JOINED = "_"


def instant_of(order: tuple[str, str], layout: int, zone: ZoneInfo) -> Instant:
    """Return a done action as an instant of the source.

    Its id is what the file of the timeline begins with: the requested time, and with layout 2 the
    completion time as well.

    Args:
        order: completion and requested time.
        layout: of the timeline.
        zone: of the table's times.
    """
    completed, requested = order
    text = requested if layout == 1 else f"{requested}{_JOINED}{completed}"
    return Instant(text, moment_of(completed, zone))


def order_of(instant: Instant) -> tuple[str, str]:
    """Return completion and requested time of an instant of the source (HUDI-W2)."""
    requested, _, completed = instant.id.partition(_JOINED)
    return completed or requested, requested


def moment_of(text: str, zone: ZoneInfo) -> datetime:
    """Return the time that 14 or 17 digits name.

    Raises:
        HudiInstantUnreadable: they name none.
    """
    try:
        moment = datetime.strptime(text[:_SECONDS], "%Y%m%d%H%M%S").replace(tzinfo=zone)
        millis = int(text[_SECONDS:] or 0)
        return moment.replace(microsecond=millis * 1000).astimezone(UTC)
    # The year 1 has no time in UTC east of it.
    except (ValueError, OverflowError) as no_time:
        raise HudiInstantUnreadable(instant=text) from no_time
