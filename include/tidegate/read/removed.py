"""The rows that are gone from a file, by position and key, in the states that are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class RemovedKeys:
    """Rows with one of these keys are gone; NULL equals NULL (ICE-4.8). Compared by identity."""

    columns: tuple[str, ...]
    """The names of the key's columns in conformed batches."""
    rows: pa.RecordBatch
    """The deleted keys, of the same types, with columns named and ordered as `columns`."""


@dataclass(frozen=True, eq=False)
class Removed:
    """The rows that are gone from one file in one state of the table."""

    positions: pa.Int64Array | None = None
    """Zero-based physical positions, ascending, unique (ICE-6.5); None: no row by position."""
    keys: tuple[RemovedKeys, ...] = ()
    """Key sets that fit into memory."""
    passes: tuple[Iterable[RemovedKeys], ...] = ()
    """Key sets that do not fit into memory: iterating loads their parts one by one, and may be
    repeated; each part is matched in a pass of its own over the rows (ICE-6.9)."""
    unaddressed: Mapping[str, int] = field(default_factory=dict)
    """Delete file → its rows without path or position, which remove nothing (ICE-4.10)."""

    @property
    def removes_nothing(self) -> bool:
        """Whether no row is gone."""
        return self.positions is None and not self.keys and not self.passes


@dataclass(frozen=True)
class NewerThan:
    """A bound: only rows whose column is greater are read (ICE-8.3)."""

    column: str
    """int64, in conformed batches; NULL is not greater."""
    bound_exclusive: int


@dataclass(frozen=True)
class FileStates:
    """A file in the states that a read compares; a plain read has only `after`."""

    before: Removed | None
    """None: the file is not part of the earlier state."""
    after: Removed | None
    """None: the file is not part of the later state."""
    kinds: bool = False
    """Whether the rows that differ are read, each with its kind (ICE-3.9)."""
    newer: NewerThan | None = None

    @property
    def are_plain(self) -> bool:
        """Whether every row of the file is wanted as it stands."""
        after = self.after
        return (
            self.before is None
            and after is not None
            and after.removes_nothing
            and not self.kinds
            and self.newer is None
        )


WHOLE = FileStates(None, Removed())
"""A file that is read as it is."""
