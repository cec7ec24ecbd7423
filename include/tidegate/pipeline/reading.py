"""Read pieces of a source as a pipeline wants them.

Conformed, filtered, without the filter's own columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.predicate import Predicate, named_columns
from tidegate.read import PieceFormat, read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tidegate.config import ReadConfig, SourceConfig
    from tidegate.model.plan import Piece, Pin
    from tidegate.source.protocol import Source

_WHERE = "source.read.filter"


def filter_columns(read: ReadConfig) -> tuple[str, ...]:
    """Name the columns that the filter needs and the output does not have."""
    if read.filter is None or read.columns is None:
        return ()
    return tuple(name for name in named_columns(read.filter, _WHERE) if name not in read.columns)


@dataclass(frozen=True)
class Reading:
    """How one pinned source is read."""

    schema: pa.Schema
    """Of the batches that come out."""
    _format: PieceFormat
    _filter: Predicate | None

    @classmethod
    def of(cls, config: SourceConfig, source: Source, pin: Pin) -> Reading:
        """Bind filter and columns to a pin, which was made with `filter_columns` as extra columns.

        Raises:
            PredicateInvalid: the filter does not fit the schema.
        """
        import pyarrow as pa

        read, whole = config.read, source.schema(pin)
        names = [name for name in whole.names if name not in set(filter_columns(read))]
        return cls(
            schema=pa.schema([whole.field(name) for name in names]),
            _format=source.format(pin),
            _filter=Predicate.parse(read.filter, whole, _WHERE) if read.filter else None,
        )

    def batches(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        """Read pieces in order; batches of `schema` with at least one row."""
        for batch in read_pieces(pieces, self._format, filter=self._filter):
            yield batch.select(self.schema.names)
