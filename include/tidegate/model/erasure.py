"""Which rows are erased for good: told by fingerprints, so that no record keeps what was erased."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tidegate.model.instant import Instant
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class Fingerprint(Value):
    """The values of a row that is erased, as far as they are kept."""

    digest: str
    """32 hexadecimal digits over the salt and the text of each value."""
    hint: int
    """32 bits of the hash of these texts, so that few other rows are compared by their digest."""


@dataclass(frozen=True)
class Erasure(Value):
    """The content of `erasures/<number>.json`: rows with these values are never published again."""

    number: int
    """Part of the digest of every later plan."""
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    """What kind of values it names in each column: `text`, `whole numbers` or `dates`. Of another
    kind, a value of the same row may have another text."""
    salt: str
    rows: tuple[Fingerprint, ...]
    """One for each combination of values in these columns."""
    by: str
    at: datetime
    comment: str = ""
    since: Instant | None = field(default=None, metadata={SPARSE: True})
    """Rows that came after it may lack one of the columns, because only earlier ones had it; None:
    no row may, since erased ones could not be told among them. Without columns, that is said of the
    erasures that it stands instead of."""
    instead: tuple[int, ...] | None = field(default=None, metadata={SPARSE: True})
    """Earlier erasures that name the same rows by other columns; None: none."""


@dataclass(frozen=True)
class ErasedFile(Value):
    """A file that had erased rows."""

    path: str
    rows: int
    """The rows that were erased; of a file that could only be deleted unread, all."""
    done: str
    """What was done with it."""
    partition: str | None = field(default=None, metadata={SPARSE: True})
    """Text of the partition, if that is known."""
    is_published: bool | None = field(default=None, metadata={SPARSE: True})
    """Whether it is one of the partition's content; None: it is not."""


@dataclass(frozen=True)
class ErasureLook(Value):
    """What an erasure would find, as far as that can be read."""

    files: tuple[ErasedFile, ...]
    unread: tuple[ErasedFile, ...]
    """Files that cannot be looked through, and why."""


@dataclass(frozen=True)
class ErasureReport(Value):
    """The content of `erasures/<number>-<time>.report.json`: what one call erased."""

    numbers: tuple[int, ...]
    files: tuple[ErasedFile, ...]
    left: tuple[ErasedFile, ...]
    """Files that still have such rows, and why."""
    at: datetime

    @property
    def rows(self) -> int:
        """The rows that were erased of what is published."""
        return sum(file.rows for file in self.files if file.is_published)
