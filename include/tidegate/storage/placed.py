"""A file and the store that has it, for readers that open it once or several times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.storage.protocol import Storage


@dataclass(frozen=True)
class PlacedFile:
    """A file to be read; can be sent to other processes."""

    storage: Storage
    path: str

    def open(self) -> pa.NativeFile:
        """Open the file; see `Storage.open_input`."""
        return self.storage.open_input(self.path)
