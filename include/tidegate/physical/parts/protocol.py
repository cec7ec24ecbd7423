"""The protocol of the formats of part files: how rows are written, and how they are read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

from tidegate.physical.protocol import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.dataset as ds

    from tidegate.model.part_format import PartFormat
    from tidegate.storage import PlacedFile


@dataclass(frozen=True)
class Unfit:
    """A column that a format cannot hold."""

    column: str
    type: str
    """The type that does not fit, of the column or of something inside it."""
    why: str


class PartWriter(Protocol):
    """Writes one file; the same row groups give the same bytes (PC-F11)."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group."""
        ...

    def close(self) -> None:
        """Write the end of the file, which may stay open."""
        ...


class PartRows(Protocol):
    """One open part file; a context manager that closes it. Used by one thread at a time."""

    @property
    def schema(self) -> pa.Schema:
        """The columns: as the reader was told them, else as the file has them."""
        ...

    @property
    def rows(self) -> int:
        """All rows of the file; formats without counts are read for it."""
        ...

    @property
    def column_bytes(self) -> Mapping[str, int]:
        """Top-level column → its uncompressed bytes; a guess if the format does not say."""
        ...

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Decode all rows in their order.

        Args:
            columns: top-level columns, in the order in which the batches have them; an empty list
                yields batches that only count rows.
            batch_rows: the most rows per batch.

        Raises:
            OSError, pa.ArrowException: the file is damaged.
        """
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...


class PartKind(Protocol):
    """One format of part files."""

    def unfit(self, schema: pa.Schema, form: PartFormat) -> Iterator[Unfit]:
        """Yield the columns that cannot be written."""
        ...

    def writer(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> PartWriter:
        """Begin a file.

        Args:
            file: new and empty; not closed.
            first: the first row group, which is not written yet.
            form: how it is written.
        """
        ...

    def rows(self, file: PlacedFile, form: PartFormat, columns: pa.Schema | None) -> PartRows:
        """Open a file.

        Args:
            file: where it is.
            form: how the file was written.
            columns: the columns that the plan of the file had. None: as the file says, which it
                must, by `FormatKind.has_columns`.

        Raises:
            OSError, pa.ArrowException: it is not a file of this format.
        """
        ...

    def dataset_format(self, form: PartFormat, columns: pa.Schema) -> ds.FileFormat | None:
        """Return how Arrow's datasets read such files; None if they cannot.

        Args:
            form: how the files were written.
            columns: the columns of the files in their order.
        """
        ...
