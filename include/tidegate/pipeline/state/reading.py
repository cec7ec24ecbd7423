"""Read pieces of a source as the pipeline file defines it.

Rows are conformed and filtered, and the filter's own columns are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.predicate import Predicate, named_columns
from tidegate.read.balance import Balance
from tidegate.read.changes import Settler
from tidegate.read.exchange import KeyPlacement
from tidegate.read.merge import ReadOptions, first_rows
from tidegate.stage.partition_split import data_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tidegate.config import PipelineConfig, ReadConfig, SourceConfig
    from tidegate.model.exchange import Exchange
    from tidegate.model.ignored import Ignored
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.settling import SettleRules
    from tidegate.physical.whole_file import WholeFile
    from tidegate.source.protocol import Source
    from tidegate.source.reading import SliceReader

_WHERE = "source.read.filter"


def filter_columns(read: ReadConfig) -> tuple[str, ...]:
    """Return the columns that the filter needs and the output does not have."""
    if read.filter is None or read.columns is None:
        return ()
    return tuple(name for name in named_columns(read.filter, _WHERE) if name not in read.columns)


def published_schema(config: PipelineConfig, schema: pa.Schema) -> pa.Schema:
    """Return the columns of the part files that are written from a reading's rows."""
    import pyarrow as pa

    names = data_columns(schema.names, config.target.partition_by)
    return pa.schema([schema.field(name) for name in names if name not in config.unpublished])


@dataclass(frozen=True)
class Reading:
    """How one pinned source is read."""

    schema: pa.Schema
    """The schema of the resulting batches."""
    changes_schema: pa.Schema
    """The schema of changes before settling, with the columns that only settling needs."""
    rules: SettleRules | None
    """How changes are settled; None if they are not."""
    _reader: SliceReader
    _options: ReadOptions
    _read: ReadConfig

    @classmethod
    def of(cls, config: SourceConfig, source: Source, pin: Pin) -> Reading:
        """Bind filter and columns to a pin, which was made with `filter_columns` as extra columns.

        Raises:
            PredicateInvalid: the filter does not fit the schema.
        """
        import pyarrow as pa

        read, reader, rules = config.read, source.reading.reader(pin), source.reading.settling(pin)
        whole = reader.schema
        hidden = set(rules.hidden) if rules else set()
        for_filter = set(filter_columns(read)) - hidden
        carried = [name for name in whole.names if name not in for_filter]
        return cls(
            schema=pa.schema([whole.field(name) for name in carried if name not in hidden]),
            changes_schema=pa.schema([whole.field(name) for name in carried]),
            rules=rules,
            _reader=reader,
            _options=ReadOptions(
                # A name that matches two columns was refused when the source was pinned.
                Predicate.parse(read.filter, whole, _WHERE, case_sensitive=config.tells_case)
                if read.filter
                else None,
                include_deleted=read.keeps_deleted,
            ),
            _read=read,
        )

    def batches(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        """Read pieces in order; batches of `schema` with at least one row."""
        return self.shown(self.changes(pieces))

    def changes(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        """Read pieces in order; batches of `changes_schema` with at least one row."""
        read = self._reader.batches(pieces, self._options)
        for batch in read if self._read.limit is None else first_rows(read, self._read.limit):
            yield batch.select(self.changes_schema.names)

    @property
    def keeps_rows(self) -> bool:
        """Whether the pipeline file's reading options leave rows as they are.

        Deletes of the source are not considered; they are part of the pieces.
        """
        read = self._read
        chooses = self._options.filter is not None or read.limit is not None
        return not (chooses or self.rules or read.keeps_deleted or read.emits_kinds)

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at a piece's file, to find out whether all its rows are read unchanged."""
        return self._reader.whole_file(piece)

    @property
    def ignored(self) -> Ignored | None:
        """What had no effect in what was read so far; None if there was nothing."""
        return None if self._reader.ignored.is_empty else self._reader.ignored

    def settler(self) -> Settler | None:
        """Return a new settler of changes, with its own counts; None if nothing is settled."""
        if self.rules is None or not self.rules.exchanges:
            return None
        return Settler(self.rules, self.changes_schema)

    def balance(self) -> Balance | None:
        """Return a new check of changes, if the pipeline file asks for it (ICE-3.17)."""
        if self.rules is None or not self._read.verifies:
            return None
        return Balance(self.rules.compared)

    def placement(self, exchange: Exchange) -> KeyPlacement:
        """Return how a sub-split distributes changes over buckets.

        If there are several exchanges, the first brings together rows with the same `_row_id`, the
        last rows with the same key.
        """
        by_row_id = exchange.stage + 1 < exchange.stages
        columns = self.rules.placed_by if self.rules else ()
        return KeyPlacement(columns, exchange.buckets, by_row_id=by_row_id)

    def shown(self, changes: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Remove the columns that are not part of the result."""
        for batch in changes:
            yield batch.select(self.schema.names)
