"""What files have in common that are read from their beginning, and do not tell their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import pyarrow as pa

from tidegate.physical.protocol import RowGroup
from tidegate.physical.text_stream import estimated_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.physical.protocol import Joinable, Passing
    from tidegate.physical.text_stream import TextStream

ALL_ROWS = 1 << 62
"""The rows of a file that does not tell them: there are no more than this."""


class TextSource(Protocol):
    """An open text file, and how its text is read."""

    @property
    def file(self) -> pa.NativeFile:
        """Open for random reads."""
        ...

    def stream(self) -> TextStream:
        """Return the text from its beginning; the file stays open."""
        ...


class StreamedRows:
    """The parts of `PhysicalRows` for one group of rows, of which there may be any number."""

    def __init__(self, source: TextSource, header_lines: int = 0) -> None:
        self._text = source
        self._file = source.file
        self._header_lines = header_lines

    def estimated_rows(self) -> int:
        """Estimate the rows from the lines at the beginning; at least 1."""
        return estimated_rows(self._file, self._text.stream(), self._header_lines)

    @property
    def rows(self) -> int:
        """See `ALL_ROWS`."""
        return ALL_ROWS

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """One group, which begins with the file."""
        return (RowGroup(ALL_ROWS, int(self._file.size()), 0),)

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Return None: text is not decoded and filtered in one step."""
        del columns, start, end, passing, batch_rows
        return None

    def joinable(self, columns: Sequence[str]) -> None:
        """Return None: text files are not decoded together."""
        del columns

    def joining(self, first: Joinable) -> None:
        """See `joinable`."""
        del first

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._file.close()


class InvalidRow(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """A row does not fit the columns.

    Attributes:
        row: its number, the first is 1; None if it is not known.
        column: its top-level column; None if it is the whole row.
        problem: what was expected, and found.
    """

    def __init__(self, row: int | None, column: str | None, problem: str) -> None:
        super().__init__(f"row {row}, column {column}: {problem}")
        self.row = row
        self.column = column
        self.problem = problem


def between(
    batches: Iterable[pa.RecordBatch], start: int, end: int, batch_rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a range with their positions, in batches of at most so many."""
    first = 0
    for batch in batches:
        low, high = max(start, first), min(end, first + batch.num_rows)
        for position in range(low, high, batch_rows):
            length = min(batch_rows, high - position)
            yield position, batch.slice(position - first, length)
        first += batch.num_rows
        if first >= end:
            return
