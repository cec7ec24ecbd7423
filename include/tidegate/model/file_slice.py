"""A file of a source with its deltas, and the change of a commit that it is part of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from tidegate.model.wire import SPARSE, Value


class DeltaKind(StrEnum):
    """How a delta names the rows of a base file that it changes."""

    POSITIONS = "positions"
    """A file with rows of (data file, position) that are gone (ICE-4.6)."""
    KEYS = "keys"
    """A file with the equality keys of rows that are gone (ICE-4.7)."""
    VECTOR = "vector"
    """A bitmap of one data file's positions: a blob in a Puffin file (ICE-4.5)."""
    LOG = "log"
    """A log file with records and deletes by key (HUDI-L3)."""
    HISTORY = "history"
    """A log file whose records were merged into a base file since (HUDI-F13)."""
    MOVED = "moved"
    """A log file of a slice whose rows were clustered into this one (HUDI-F13)."""
    PREVIOUS = "previous"
    """The base file that stood before (HUDI-R6)."""
    CHANGES = "changes"
    """A log of the changes that one write made to a base file (HUDI-O11)."""
    WRITTEN = "written"
    """The base file that the write of a log of changes wrote."""


@dataclass(frozen=True)
class Delta(Value):
    """One file, or one deletion vector, that is applied to a base file."""

    KEEPS_TEXT: ClassVar[bool] = True

    path: str
    """The path as the source spells it."""
    kind: DeltaKind
    file_format: str
    """`parquet`, `orc`, `avro` or `puffin`."""
    file_bytes: int
    """Length of the whole file."""
    rows: int
    """Records; of a vector: deleted positions."""
    sequence: int
    """The number of the commit whose state it belongs to."""
    field_ids: tuple[int, ...] = ()
    """Equality ids; empty for other kinds."""
    offset: int | None = None
    """Where the blob of a vector begins."""
    blob_bytes: int | None = None
    """Length of the blob of a vector."""
    referenced: str | None = None
    """The only data file that it applies to, if it names one."""

    @property
    def key(self) -> tuple[str, int | None]:
        """What distinguishes deltas (ICE-3.10)."""
        return self.path, self.offset

    @property
    def size_bytes(self) -> int:
        """The bytes that are read of it: its blob for a vector, else the whole file (ICE-5.4)."""
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
    """None: the file is not part of the previous state."""
    after: Deltas | None
    """None: the file is not part of the next state."""
    net: bool = False
    """Whether the states are not parent and child, so that updates are not paired (ICE-3.18)."""
    time: datetime | None = field(default=None, metadata={SPARSE: True})
    """The time of the commit; None in plans of versions that did not store it."""
    sequence: int | None = field(default=None, metadata={SPARSE: True})
    """The commit's number in the table, if the format counts them."""


@dataclass(frozen=True)
class CheckedState(Value):
    """The state of a file that is read only to check the changes of a commit (ICE-3.17)."""

    commit: int
    """Id of the commit's snapshot."""
    is_before: bool
    """Whether it is the state before the commit; otherwise the one after it."""


@dataclass(frozen=True)
class FileSlice(Value):
    """A base file and the deltas that apply to it in the states that are read."""

    path: str
    """The path as the source spells it."""
    file_format: str = "parquet"
    file_bytes: int = 0
    """Length of the base file according to the source."""
    rows: int | None = None
    """Rows of the base file according to the source; None: only the file tells."""
    offsets: tuple[int, ...] = ()
    """Offsets of the row groups according to the source; empty: only the footer tells."""
    sequence: int | None = None
    """Number of the commit that added the base file, if the source counts commits."""
    deltas: Deltas = ()
    """In a read of one state: the deltas that apply. Files of one age share one tuple."""
    change: Change | None = field(default=None, metadata={SPARSE: True})
    """In a read of changes: the change; None in a read of one state."""
    check: CheckedState | None = field(default=None, metadata={SPARSE: True})
    """Set if the file is read for a check and returns no rows."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Values for the source's own kind: partition values, row ids, modification time."""

    @property
    def delta_lists(self) -> tuple[Deltas, ...]:
        """The lists of deltas of all states that are read, without empty ones."""
        if self.change is None:
            return (self.deltas,) if self.deltas else ()
        return tuple(found for found in (self.change.before, self.change.after) if found)
