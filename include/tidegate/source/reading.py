"""What a source is asked about its rows: their schema, and the rows of each piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tidegate.model.ignored_deletes import IgnoredDeletes
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.settling import SettleRules
    from tidegate.physical.whole_file import WholeFile
    from tidegate.read.merge import ReadOptions


class SliceReader(Protocol):
    """Merge-reads the file slices of one pin inside tasks; used by one thread at a time."""

    @property
    def schema(self) -> pa.Schema:
        """Of the batches that come out."""
        ...

    @property
    def ignored(self) -> IgnoredDeletes:
        """Deletes that hit nothing in what was read so far (ICE-4.10)."""
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
        """Look at a piece's file; None unless all its rows come out as they stand in it.

        Raises:
            TidegateError: as `batches`, where the file cannot be opened.
        """
        ...


class PinnedReading(Protocol):
    """How the rows of a pinned source are read; in a task it looks at nothing but their files."""

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of the batches that come out of `reader(pin)`."""
        ...

    def settling(self, pin: Pin) -> SettleRules | None:
        """Return how changes are settled that are read as of a pin; None where nothing is."""
        ...

    def reader(self, pin: Pin) -> SliceReader:
        """Return the reading side, bound to the pinned schema; looks at nothing."""
        ...


def pinned_columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Write a schema as `Pin.schema` holds it."""
    return tuple((column.name, str(column.type)) for column in schema)
