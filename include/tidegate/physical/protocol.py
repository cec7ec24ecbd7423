"""What every file format can do: tell its columns and row groups, give ranges of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq

    from tidegate.predicate import Predicate

BATCH_ROWS = 131_072
"""Most rows decoded at a time; a tenth less CPU than the 65,536 of ICE-6.2, measured."""
BATCH_BYTES = 32 << 20
"""Most bytes decoded at a time, by the footer; bounds memory where rows are wide (ICE-6.2)."""
FIELD_ID = b"PARQUET:field_id"
"""Metadata key under which every format gives the field ids of its columns, at every depth."""


def id_metadata(name: str, identity: Any) -> dict[bytes, bytes] | None:
    """Return the metadata of a column that a file's own schema gives a field id.

    Args:
        name: the column.
        identity: a number, or one in text; None: the file gives it none.

    Raises:
        pa.ArrowInvalid: it is no number.
    """
    if identity is None:
        return None
    try:
        return {FIELD_ID: str(int(identity)).encode()}
    except (TypeError, ValueError) as damaged:
        problem = f"the field id of column {name} is no number: {identity!r}"
        raise pa.ArrowInvalid(problem) from damaged


@dataclass(frozen=True)
class RowGroup:
    """A part of a file that can be decoded without the others: row group, stripe, block."""

    rows: int
    size_bytes: int
    """Compressed bytes of all columns."""
    offset: int | None = None
    """Where it begins in the file; None where that is not known."""


@dataclass(frozen=True)
class Passing:
    """Which rows of a range are wanted."""

    predicate: Predicate
    """Names physical columns only."""
    without: pa.Int64Array | None = None
    """Ascending physical positions of rows that are not wanted, whatever they hold."""


@dataclass(frozen=True, eq=False)
class Joinable:
    """An open Parquet file, all rows of which can be decoded together with those of others."""

    file: pa.NativeFile
    layout: tuple[pq.ParquetSchema, pa.Schema]
    """All columns of the file, as they are stored and as Arrow types them."""
    columns: pa.Schema
    """Physical columns to decode."""
    indices: Sequence[int]
    """Positions of their values among all that the file stores."""
    rows: int
    size_bytes: int
    """Of their values, not compressed."""


class PhysicalRows(Protocol):
    """One open file; a context that closes it. Used by one thread at a time."""

    @property
    def schema(self) -> pa.Schema:
        """Columns as the file has them, with their field ids under `FIELD_ID` where it has any."""
        ...

    @property
    def rows(self) -> int:
        """All rows of the file."""
        ...

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The parts of the file in order; their rows add up to `rows`."""
        ...

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Decode the rows from physical position `start` up to, without, `end` (ICE-6.3).

        Args:
            columns: top-level columns to decode; none gives batches that only count rows.
            start: zero-based; row groups before it are not touched.
            end: one past the last row; not beyond `rows`.
            batch_rows: most rows at a time.

        Yields:
            The position of a batch's first row, and the batch, with at least one row.

        Raises:
            UnreadableValue: a value is right, but cannot be held.
            OSError, pa.ArrowException: the file is damaged.
        """
        ...

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Decode only the rows that pass; None where that is not surely the same as filtering.

        Raises:
            FilterStopped: decoding so came to its end; all batches before are right.
        """
        ...

    def joinable(self, columns: Sequence[str]) -> Joinable | None:
        """Return what lets other files be decoded with this one; None where they cannot be.

        Args:
            columns: as `filtered` has them.
        """
        ...

    def joining(self, first: Joinable) -> Joinable | None:
        """Return what lets the file be decoded with another one; None unless it has its columns."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...


class FilterStopped(Exception):
    """Decoding with a pushed filter could not go on."""


class UnreadableValue(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """A column has a value that no array of its type can hold.

    Attributes:
        column: its top-level column.
        problem: the value, and what it does not fit.
    """

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"column '{column}': {problem}")
        self.column = column
        self.problem = problem


def counted_rows(rows: int) -> pa.RecordBatch:
    """Give a batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([])))
