"""Which rows are erased for good: told by fingerprints, so that no record keeps what was erased."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

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
    salt: str
    rows: tuple[Fingerprint, ...]
    """One for each combination of values in these columns."""
    by: str
    at: datetime
    comment: str = ""


@dataclass(frozen=True)
class ErasedFile(Value):
    """A file that had erased rows."""

    path: str
    rows: int
    """The rows that were erased; of a file that could only be deleted unread, all."""
    done: str
    """What was done with it."""
    partition: str | None = field(default=None, metadata={SPARSE: True})
    """Text of the partition; None: it is not one of a partition's content."""


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
        return sum(file.rows for file in self.files if file.partition is not None)
