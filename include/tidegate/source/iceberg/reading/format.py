"""Read the files of a pinned table: open, choose columns, conform by field id (ICE-6.11–6.19)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import SourceFileDamaged
from tidegate.model.row_kind import RowKind
from tidegate.model.wire import canonical
from tidegate.physical import ParquetRows
from tidegate.physical.removed import FileStates, NewerThan, Removed
from tidegate.physical.whole_file import WholeFile, is_whole
from tidegate.source.iceberg.columns.columns import constants, wanted_columns
from tidegate.source.iceberg.columns.field_ids import FieldIds
from tidegate.source.iceberg.columns.key_columns import KeyColumn, KeyColumns
from tidegate.source.iceberg.columns.metadata_columns import (
    LINEAGE,
    POSITIONAL,
    TYPES,
    UPDATED,
    metadata_column,
)
from tidegate.source.iceberg.columns.selection import Selection
from tidegate.source.iceberg.deletes.loading import DeleteLoader
from tidegate.source.iceberg.deletes.piece_deletes import PieceDeletes
from tidegate.source.iceberg.deletes.positions import Target
from tidegate.source.iceberg.table.paths import mounted_path
from tidegate.source.iceberg.table.whole_files import ManifestSays, open_whole
from tidegate.source.projection import Projection, Projections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.io import FileIO

    from tidegate.config import SourceConfig
    from tidegate.model.plan import Piece, Pin
    from tidegate.physical import PhysicalRows
    from tidegate.source.iceberg.deletes.file import DeleteFile
    from tidegate.source.projection import Wanted

_SINCE = "since_sequence"
"""Detail of a piece: only rows that were written after this sequence number are read."""


class IcebergFormat:
    """The reading side of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, files: FileIO, source: str, config: SourceConfig) -> None:
        """Prepare; nothing is opened yet.

        Args:
            pin: the table as planning saw it.
            files: where its files are.
            source: the table, for errors.
            config: the pipeline's `source`.
        """
        self._files = files
        self._source = source
        self._config = config
        selection = Selection(pin.details)
        self._names = selection.names
        self._kind = selection.row_kind
        columns = wanted_columns(selection.schema)
        self._table_columns = {column.name: column for column in columns}
        self._fields = FieldIds(source, selection, config.assume_names)
        self._keys = KeyColumns(source, selection, columns)
        place = f"{pin.identity} {canonical(config.location_rewrite)}"
        self._deletes = DeleteLoader(
            files, source, place, self._fields, self._keys, config.split.max_delete_memory
        )
        self._projections = Projections()
        self._last: tuple[Piece, PieceDeletes] | None = None

    @property
    def schema(self) -> pa.Schema:
        """What comes out of conformed batches in the end, without columns for the keys only."""
        return pa.schema([pa.field(name, self._type(name)) for name in self._names])

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's data file; raises as `open_rows`."""
        rows = open_rows(self._files, piece, self._source)
        length = piece.details["length"]
        ends_there = piece.byte_range is not None and piece.byte_range[1] == length
        if ends_there and any(
            group.offset is not None and group.offset >= length for group in rows.row_groups
        ):
            # The last piece of a file has what lies behind that length, but this one ends there.
            problem = f"expected row groups within {length} bytes, found one behind them"
            with rows:
                raise SourceFileDamaged(path=piece.path, problem=problem)
        return rows

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the columns of the file whose field ids are wanted.

        Raises:
            MissingFieldIds: the file has no field ids and the table no name mapping (ICE-6.14).
        """
        keys = {column.key for column in self._wanted(piece, self._hidden(piece))}
        found = self._fields.found(file_schema, piece.path)
        return [column.name for column in found if column.key in keys]

    def removed(self, piece: Piece) -> FileStates:
        """Load the deletes that apply to the piece's file; raises as `DeleteLoader.removed`."""
        deletes = self._deletes_of(piece)
        after = self._removed(deletes.after, piece)
        before = self._removed(deletes.before, piece)
        if before is not None and after is not None and deletes.has_same_keys:
            # The same objects, so that the reader sees that only positions differ (ICE-3.11).
            before = replace(before, keys=after.keys, passes=after.passes)
        since = piece.details.get(_SINCE)
        return FileStates(
            before,
            after,
            deletes.kinds,
            NewerThan(UPDATED, since) if since is not None else None,
            len(self._hidden(piece)) + len(self._names_of(piece)) - len(self._names),
            not POSITIONAL.isdisjoint(self._names),
        )

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        """Give a batch the pinned schema, and behind it what keys need; what fits is not copied.

        Raises:
            MissingFieldIds: see `physical_columns`.
            SchemaIncompatible: a column cannot be promoted to the pinned type.
        """
        hidden, names = self._hidden(piece), self._names_of(piece)
        read_as = {
            "partition": piece.details["partition"],
            "behind": [*names[len(self._names) :], *(key.name for key in hidden)],
        }
        projection = self._projections.get(
            batch.schema, read_as, lambda: self._project(batch.schema, piece, hidden)
        )
        projected = projection.apply(batch, piece.path)
        if len(self._table_columns) == len(names) and not hidden:
            return projected
        # Metadata columns stand between those of the table, keys outside of their structs.
        own = dict(zip(self._table_columns, projected.columns, strict=False))
        kind = RowKind.UPSERT if _SINCE in piece.details else self._kind
        arrays = [
            own[name] if name in own else metadata_column(name, projected, piece, position, kind)
            for name in names
        ]
        roots = projected.columns[projected.num_columns - len(hidden) :]
        arrays += [key.of(root) for key, root in zip(hidden, roots, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, [*names, *(key.name for key in hidden)])

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file; raises as `open`, `physical_columns` and `conform`.

        A delete file that applies rules it out, whether one of its rows is hit or not.
        """
        if _SINCE in piece.details or PieceDeletes.of(piece) != PieceDeletes(None, (), False):
            return None
        path = mounted_path(self._files, piece.path)
        if path is None or len(self._table_columns) != len(self._names):
            return None
        with self.open(piece) as file:
            if not isinstance(file, ParquetRows) or not is_whole(piece, file):
                return None
            projection = self._project(file.schema, piece, ())
            if projection.passing != tuple(file.schema.names):
                return None
            return WholeFile(path, file.footer, projection.passing, projection.repeated)

    def _project(self, schema: pa.Schema, piece: Piece, hidden: Sequence[KeyColumn]) -> Projection:
        wanted = self._wanted(piece, hidden)
        values = constants(piece.details["partition"], wanted)
        return Projection(wanted, self._fields.found(schema, piece.path), values, piece.path)

    def _wanted(self, piece: Piece, hidden: Sequence[KeyColumn]) -> tuple[Wanted, ...]:
        lineage = (LINEAGE[name] for name in self._names_of(piece) if name in LINEAGE)
        return (*self._table_columns.values(), *lineage, *(key.root for key in hidden))

    def _names_of(self, piece: Piece) -> Sequence[str]:
        """Name what comes out, and behind it what tells new rows from old ones (ICE-8.3)."""
        if _SINCE not in piece.details or UPDATED in self._names:
            return self._names
        return [*self._names, UPDATED]

    def _type(self, name: str) -> pa.DataType:
        own = self._table_columns.get(name)
        return own.type if own is not None else TYPES[name]

    def _removed(self, deletes: Sequence[DeleteFile] | None, piece: Piece) -> Removed | None:
        if deletes is None:
            return None
        target = Target(
            piece.path,
            tuple(piece.details.get("rivals") or ()),
            self._config.path_match == "exact",
        )
        return self._deletes.removed(deletes, target)

    def _hidden(self, piece: Piece) -> list[KeyColumn]:
        """Return the columns that the piece's equality deletes need besides those that come out."""
        found = {
            column.name: column
            for file in self._deletes_of(piece).key_files
            for column in self._keys.of(file.field_ids, file.path)
            if column.hidden
        }
        return list(found.values())

    def _deletes_of(self, piece: Piece) -> PieceDeletes:
        # One piece is read after the other, batch by batch.
        if self._last is None or self._last[0] is not piece:
            self._last = piece, PieceDeletes.of(piece)
        return self._last[1]


def open_rows(files: FileIO, piece: Piece, source: str) -> PhysicalRows:
    """Open the data file that a piece is of; raises as `open_whole`."""
    said = ManifestSays(
        piece.path, piece.details["format"], piece.details["records"], piece.details["length"]
    )
    return open_whole(files, said, source)
