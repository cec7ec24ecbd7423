"""A file of a source with what is applied to it, and the change of a commit that it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from tidegate.model.wire import SPARSE, Value


class DeltaKind(StrEnum):
    """How a delta says which rows of a base file it changes."""

    POSITIONS = "positions"
    """A file with rows of (data file, position) that are gone (ICE-4.6)."""
    KEYS = "keys"
    """A file with the equality keys of rows that are gone (ICE-4.7)."""
    VECTOR = "vector"
    """A bitmap of one data file's positions: a blob in a Puffin file (ICE-4.5)."""


@dataclass(frozen=True)
class Delta(Value):
    """One file, or one deletion vector, that is applied to a base file."""

    KEEPS_TEXT: ClassVar[bool] = True

    path: str
    """As the source spells it."""
    kind: DeltaKind
    file_format: str
    """`parquet`, `orc`, `avro` or `puffin`."""
    file_bytes: int
    """Length of the whole file."""
    rows: int
    """Records; of a vector: deleted positions."""
    sequence: int
    """Number of the commit whose state it belongs to."""
    field_ids: tuple[int, ...] = ()
    """Equality ids; empty for other kinds."""
    offset: int | None = None
    """Where the blob of a vector begins."""
    blob_bytes: int | None = None
    """Length of the blob of a vector."""
    referenced: str | None = None
    """The only data file that it addresses, if it says so."""

    @property
    def key(self) -> tuple[str, int | None]:
        """What tells deltas apart (ICE-3.10)."""
        return self.path, self.offset

    @property
    def size_bytes(self) -> int:
        """Bytes that are read of it: of a vector its blob, else the whole file (ICE-5.4)."""
        return self.file_bytes if self.blob_bytes is None else self.blob_bytes


Deltas = tuple[Delta, ...]


@dataclass(frozen=True)
class Change(Value):
    """What a commit did to a file: its deltas before the commit and after it (ICE-3.9)."""

    ordinal: int
    """Number of the commit within the window."""
    commit: int
    """Id of the commit's snapshot."""
    before: Deltas | None
    """None: the file is not part of the state before."""
    after: Deltas | None
    """None: the file is not part of the state after."""
    net: bool = False
    """Whether they are not parent and child, so that updates are not paired (ICE-3.18)."""


@dataclass(frozen=True)
class CheckedState(Value):
    """The state that a file is read of only to check the changes of a commit (ICE-3.17)."""

    commit: int
    """Id of the commit's snapshot."""
    is_before: bool
    """The state before the commit, else the one after it."""


@dataclass(frozen=True)
class FileSlice(Value):
    """A base file and the deltas that apply to it in the states that are read."""

    path: str
    """As the source spells it."""
    file_format: str = "parquet"
    file_bytes: int = 0
    """Length of the base file as the source tells it."""
    rows: int | None = None
    """Rows of the base file as the source tells them; None: only the file does."""
    offsets: tuple[int, ...] = ()
    """Bytes at which row groups begin, as the source tells them; none: only the footer does."""
    sequence: int | None = None
    """Number of the commit that added the base file, where the source counts commits."""
    deltas: Deltas = ()
    """In a read of one state: those that apply in it. Files of one age share one tuple."""
    change: Change | None = field(default=None, metadata={SPARSE: True})
    """In a read of changes: what changed; None in a read of one state."""
    check: CheckedState | None = field(default=None, metadata={SPARSE: True})
    """Set where the file is read for a check and gives no rows."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What only the source's own kind reads: partition values, row ids, modification time."""

    @property
    def delta_lists(self) -> tuple[Deltas, ...]:
        """The lists of deltas of all states that are read, without empty ones."""
        if self.change is None:
            return (self.deltas,) if self.deltas else ()
        return tuple(found for found in (self.change.before, self.change.after) if found)
