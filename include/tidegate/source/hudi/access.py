"""Access to one table: its properties, and its timeline as a run saw it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.errors import SourceFileGone, SourceNotFound
from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from tidegate.config import HudiSourceConfig
    from tidegate.model.plan import Pin

_PROPERTIES = (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")


class TableAccess:
    """Opens one table; keeps the timeline that was listed last."""

    def __init__(self, config: HudiSourceConfig) -> None:
        """Prepare, without opening anything yet."""
        self.config = config
        self.name = config.path
        self.files = TableFiles(config.path)
        self._loaded: LoadedTimeline | None = None
        self.reloads: str | None = None
        """Why the window that was asked for last reads the whole table again, by a policy.

        Only a note of the plan: a process that plans the window again does not have it.
        """

    def properties(self) -> TableProperties:
        """Read the table's properties (HUDI-T1).

        Raises:
            SourceNotFound: the folder is no table.
            HudiPropertyUnsupported: the table needs something that is not read.
        """
        for path in _PROPERTIES:
            try:
                text = self.files.read(path).decode(errors="replace")
            except SourceFileGone:
                continue
            return TableProperties.parse(self.name, text)
        problem = f"no `{_PROPERTIES[0]}` in the folder"
        raise SourceNotFound(source=self.name, problem=problem)

    def look(self) -> LoadedTimeline:
        """List the timeline anew."""
        self._loaded = LoadedTimeline(self.files, self.properties())
        return self._loaded

    def timeline(self, pin: Pin) -> LoadedTimeline:
        """Return the timeline that was listed for a pin; a newer one has its instants as well."""
        del pin
        return self._loaded or self.look()

    def zone(self, table: TableProperties) -> ZoneInfo:
        """Return the zone of a table's times."""
        return ZoneInfo("UTC" if table.is_utc else self.config.timeline_timezone)
