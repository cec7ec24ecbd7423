"""What a Hudi table's timeline tells of files that are not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.volume import Volume
from tidegate.source.hudi.timeline.metadata import Role
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import Instant
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.source.hudi.access import TableAccess
    from tidegate.source.hudi.timeline.loaded import Order


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
        ends = {order_of(instant) for instant in instants}
        beside: dict[str, list[str]] = {}
        for action in timeline.active.writes.values():
            if action.order not in ends:
                beside.setdefault(action.order[0], []).append(action.requested)

        def volume(order: Order) -> Volume:
            completed, requested = order
            # Writes that were done at the same time are taken with it (HUDI-W4).
            names = (requested, *beside.get(completed, ()))
            found = (timeline.metadata_of(name) for name in names)
            stats = [it for one in found if one.role is Role.WRITE for it in one.files]
            return Volume(
                len(stats),
                sum(stat.size_bytes for stat in stats),
                sum(stat.rows for stat in stats),
            )

        return (volume(order_of(instant)) for instant in instants)

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return nothing: a table has no settings for readers."""
        del pin
        return {}

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Return None: logs may change every value that a footer has bounds of."""
        del piece, column
        return None
