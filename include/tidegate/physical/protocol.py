"""The protocol of all file formats: return columns and row groups, and read ranges of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq

    from tidegate.predicate import Predicate

BATCH_ROWS = 131_072
"""Most rows decoded at a time; 10 % less CPU than with the 65,536 of ICE-6.2, as measured."""
BATCH_BYTES = 32 << 20
"""Most bytes decoded at a time, from the footer; bounds memory for wide rows (ICE-6.2)."""
FIELD_ID = b"PARQUET:field_id"
"""Metadata key of field ids in the schema of every format, at every depth."""


def id_metadata(name: str, identity: Any) -> dict[bytes, bytes] | None:
    """Return the metadata of a column with a field id in the file's schema.

    Args:
        name: the column.
        identity: a number, or its text; None: the column has no field id.

    Raises:
        pa.ArrowInvalid: it is not a number.
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
    """Its position in the file; None if it is not known."""


@dataclass(frozen=True)
class Passing:
    """The wanted rows of a range."""

    predicate: Predicate
    """Uses physical columns only."""
    without: pa.Int64Array | None = None
    """Ascending physical positions of rows that are left out, whatever their values."""


@dataclass(frozen=True, eq=False)
class Joinable:
    """An open Parquet file whose rows can all be decoded together with those of others."""

    file: pa.NativeFile
    layout: tuple[pq.ParquetSchema, pa.Schema]
    """All columns of the file, as they are stored and as Arrow types them."""
    columns: pa.Schema
    """Physical columns to decode."""
    indices: Sequence[int]
    """Positions of their values among all stored values."""
    rows: int
    size_bytes: int
    """Uncompressed bytes of their values."""


class PhysicalRows(Protocol):
    """One open file; a context manager that closes it. Used by one thread at a time."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file, with their field ids under `FIELD_ID` if it has any."""
        ...

    @property
    def rows(self) -> int:
        """All rows of the file."""
        ...

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The parts of the file in order; the sum of their rows is `rows`."""
        ...

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Decode the rows from physical position `start` up to, but excluding, `end` (ICE-6.3).

        Args:
            columns: top-level columns to decode; an empty list yields batches that only count rows.
            start: zero-based; row groups before it are not read.
            end: one past the last row; at most `rows`.
            batch_rows: the most rows per batch.

        Yields:
            The position of a batch's first row, and the batch, with at least one row.

        Raises:
            UnreadableValue: a value is valid, but cannot be represented.
            OSError, pa.ArrowException: the file is damaged.
        """
        ...

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Decode only the rows that pass; None if filtering afterwards might differ.

        Raises:
            FilterStopped: decoding failed; all batches before it are correct.
        """
        ...

    def joinable(self, columns: Sequence[str]) -> Joinable | None:
        """Return what other files need to be decoded with this one; None if they cannot be.

        Args:
            columns: as for `filtered`.
        """
        ...

    def joining(self, first: Joinable) -> Joinable | None:
        """Return what decodes the file with another one; None unless their columns are equal."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...


class FilterStopped(Exception):
    """Decoding with a pushed filter could not continue."""


class UnreadableValue(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """A column has a value that no array of its type can represent.

    Attributes:
        column: its top-level column.
        problem: the value, and the limit that it exceeds.
    """

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"column '{column}': {problem}")
        self.column = column
        self.problem = problem


def counted_rows(rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([])))
