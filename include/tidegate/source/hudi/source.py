"""One Hudi table as a source of changes: its timeline, the slices of windows, their rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.source.hudi.access import TableAccess
from tidegate.source.hudi.reading.pinned import HudiReading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import HudiSourceConfig
    from tidegate.source.hudi.hints import TimelineHints
    from tidegate.source.hudi.instants import HudiTimeline
    from tidegate.source.hudi.slicing import HudiSlicing


class HudiSource:
    """The `Source` of one Hudi table.

    A task only reads, and imports nothing of what plans.
    """

    kept = None
    """None: the table itself keeps its timeline."""
    protection = None
    """None: nothing is ever written to the table."""

    def __init__(self, config: HudiSourceConfig, extra_columns: Sequence[str] = ()) -> None:
        """Prepare, without opening anything yet.

        Args:
            config: the pipeline's `source`.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
        """
        self._access = TableAccess(config)
        self._extra_columns = extra_columns
        self.reading = HudiReading(self._access)

    @cached_property
    def hints(self) -> TimelineHints:
        """What its timeline tells of files."""
        from tidegate.source.hudi.hints import TimelineHints

        return TimelineHints(self._access)

    @property
    def name(self) -> str:
        """The table's folder."""
        return self._access.name

    def places(self) -> tuple[str, ...]:
        """Return the folder, if it is one of this machine."""
        return () if "://" in self._access.name else (self._access.name,)

    @cached_property
    def timeline(self) -> HudiTimeline:
        """Its writes."""
        from tidegate.source.hudi.instants import HudiTimeline

        return HudiTimeline(
            self._access, self._extra_columns, lambda *window: self.slicing.units(*window)
        )

    @cached_property
    def slicing(self) -> HudiSlicing:
        """The slices of its windows."""
        from tidegate.source.hudi.slicing import HudiSlicing

        return HudiSlicing(self._access)
