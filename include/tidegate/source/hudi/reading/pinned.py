"""Read the rows of a pinned table; in a task, without its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.source.hudi.reading.reader import HudiReader

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.model.plan import Pin
    from tidegate.source.hudi.access import TableAccess


class HudiReading:
    """The `PinnedReading` of one table."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.reader(pin).schema

    def settling(self, pin: Pin) -> None:
        """Records are merged by key where they are read: there is nothing to settle."""
        del pin

    def reader(self, pin: Pin) -> HudiReader:
        """Return the reader, without opening anything."""
        config = self._access.config
        memory = config.split.max_delete_memory
        return HudiReader(pin, self._access.files, config.read.mode, memory)
