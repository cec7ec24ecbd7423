"""What a Hudi table's timeline tells of files that are not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.volume import Volume
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import Instant
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.source.hudi.access import TableAccess


class TimelineHints:
    """The `TableHints` of one table, from commit metadata."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access

    def volumes(
        self, pin: Pin, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        """Return what each write added; None before a read of the whole table."""
        config = self._access.config
        if config.read.mode == "snapshot" or (after is None and config.reads_standing_rows):
            return None
        timeline = self._access.timeline(pin)
        found = (timeline.metadata_of(order_of(instant)[1]) for instant in instants)
        return (
            Volume(
                len(one.files),
                sum(stat.size_bytes for stat in one.files),
                sum(stat.rows for stat in one.files),
            )
            for one in found
        )

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return nothing: a table has no settings for readers."""
        del pin
        return {}

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Return None: logs may change every value that a footer has bounds of."""
        del piece, column
        return None
