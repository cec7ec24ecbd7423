"""Read the rows of a pinned table; in a task, without asking the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.settling import SettleRules
from tidegate.source.iceberg.reading.reader import IcebergReader

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.plan import Pin
    from tidegate.source.iceberg.access import TableAccess


class IcebergReading:
    """The `PinnedReading` of one table."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.reader(pin).schema

    def settling(self, pin: Pin) -> SettleRules | None:
        """Return the result of `settle_rules` when the table was pinned."""
        raw = pin.details["settling"]
        return None if raw is None else SettleRules.from_json(raw)

    def reader(self, pin: Pin) -> IcebergReader:
        """Return the reader; in a task it opens files without asking the catalog."""
        location = pin.details["metadata"]
        files = self._access.files_at(location)
        return IcebergReader(pin, files, self._access.name, self._access.config)
