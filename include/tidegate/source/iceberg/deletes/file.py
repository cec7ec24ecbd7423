"""A delete file as a plan names it. Says neither what it deletes nor whether it applies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidegate.model.wire import Value


class DeleteContent(StrEnum):
    """How a delete file says which rows are gone."""

    POSITIONS = "positions"
    """Rows of (data file, position) (ICE-4.6)."""
    KEYS = "keys"
    """Rows of equality keys (ICE-4.7)."""
    VECTOR = "vector"
    """A bitmap of one data file's positions: a blob in a Puffin file (ICE-4.5)."""


@dataclass(frozen=True)
class DeleteFile(Value):
    """One delete file, or one deletion vector, as its manifest describes it."""

    path: str
    """As the manifest spells it."""
    content: DeleteContent
    file_format: str
    """`parquet`, `orc`, `avro` or `puffin`."""
    length: int
    """Bytes of the whole file."""
    rows: int
    """Records; of a vector: deleted positions."""
    sequence: int
    """Data sequence number."""
    field_ids: tuple[int, ...] = ()
    """Equality ids; empty for other contents."""
    offset: int | None = None
    """Where the blob of a vector begins."""
    size: int | None = None
    """Bytes of the blob of a vector."""
    referenced: str | None = None
    """The only data file that it addresses, if it says so."""

    @property
    def key(self) -> tuple[str, int | None]:
        """What tells delete sets apart (ICE-3.10)."""
        return self.path, self.offset
