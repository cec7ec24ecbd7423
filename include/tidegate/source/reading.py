"""The protocol of a source's rows: their schema, and the rows of each piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tidegate.model.ignored import Ignored
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.settling import SettleRules
    from tidegate.physical.whole_file import WholeFile
    from tidegate.read.merge import ReadOptions


class SliceReader(Protocol):
    """Merge-reads the file slices of one pin inside tasks; used by one thread at a time."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the resulting batches."""
        ...

    @property
    def ignored(self) -> Ignored:
        """What had no effect in what was read so far (ICE-4.10, HUDI-L2)."""
        ...

    def batches(self, pieces: Iterable[Piece], options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Read the rows of pieces that are wanted, their deltas applied, in bounded memory.

        Yields:
            Batches of `schema` with at least one row, in the order of pieces and base files; of
            changes each row with its kind, not settled yet.

        Raises:
            SourceFileGone, SourceFileDamaged, ColumnUnreadable, StorageSilent: see `damage_named`.
            SchemaIncompatible: a column cannot become what the schema says.
            TidegateError: deltas cannot be read; each kind of source has its own.
        """
        ...

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at a piece's file; None unless all its rows are read unchanged.

        Raises:
            TidegateError: as `batches`, where the file cannot be opened.
        """
        ...


class PinnedReading(Protocol):
    """Reads the rows of a pinned source; in a task it opens only their files."""

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of the batches of `reader(pin)`."""
        ...

    def settling(self, pin: Pin) -> SettleRules | None:
        """Return how changes as of a pin are settled; None if they are not."""
        ...

    def reader(self, pin: Pin) -> SliceReader:
        """Return the reader for a pin, without opening anything."""
        ...


def pinned_columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Return a schema in the form of `Pin.schema`."""
    return tuple((column.name, str(column.type)) for column in schema)
