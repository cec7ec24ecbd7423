"""The columns that are read of a file slice: the pinned ones, then those that its deltas need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.model.row_kind import RowKind
from tidegate.read.merge import Conforming
from tidegate.source.iceberg.columns.columns import constants, wanted_columns
from tidegate.source.iceberg.columns.metadata_columns import (
    LINEAGE,
    POSITIONAL,
    TYPES,
    UPDATED,
    metadata_column,
)
from tidegate.source.iceberg.columns.slice_details import details_of
from tidegate.source.projection import Projection, Projections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.plan import Piece
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.iceberg.columns.field_ids import FieldIds
    from tidegate.source.iceberg.columns.key_columns import KeyColumn
    from tidegate.source.iceberg.columns.selection import Selection


class PinnedColumns:
    """The columns of one pin; one per process, used by one thread at a time."""

    def __init__(self, selection: Selection, fields: FieldIds) -> None:
        """Prepare.

        Args:
            selection: the schemas and columns of the pin.
            fields: assigns ids to the columns of files.
        """
        self.names = selection.names
        self.kind = selection.row_kind
        self.fields = fields
        self.own = {column.name: column for column in wanted_columns(selection.schema)}
        """The table's own columns among them, by name."""
        self.projections = Projections()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the final batches, without columns that are only needed for keys."""
        return pa.schema([pa.field(name, self._type(name)) for name in self.names])

    def of(self, piece: Piece, keys: Sequence[KeyColumn]) -> SliceColumns:
        """Return the columns that are read of a piece's file.

        Args:
            piece: of the slice.
            keys: columns that its equality deletes need.
        """
        return SliceColumns(self, piece, [key for key in keys if key.hidden])

    def _type(self, name: str) -> pa.DataType:
        own = self.own.get(name)
        return own.type if own is not None else TYPES[name]


class SliceColumns:
    """The columns that are read of one file."""

    def __init__(self, pinned: PinnedColumns, piece: Piece, hidden: Sequence[KeyColumn]) -> None:
        self._pinned = pinned
        self._piece = piece
        self._hidden = hidden
        details = details_of(piece.slice)
        since = "since_sequence" in details
        self._kind = RowKind.UPSERT if since else pinned.kind
        self._names = list(pinned.names)
        if since and UPDATED not in self._names:
            # It distinguishes new rows from old ones (ICE-8.3).
            self._names.append(UPDATED)
        lineage = (LINEAGE[name] for name in self._names if name in LINEAGE)
        self._wanted: tuple[Wanted, ...] = (
            *pinned.own.values(),
            *lineage,
            *(key.root for key in hidden),
        )
        behind = [*self._names[len(pinned.names) :], *(key.name for key in hidden)]
        self._values = details["partition"]
        self._read_as = {"partition": self._values, "behind": behind}
        self._behind = len(behind)

    def conforming(self, file_schema: pa.Schema) -> Conforming:
        """Return how the columns of a file become these; raises as `physical`."""
        return Conforming(
            self.physical(file_schema),
            self.conform,
            hidden=self._behind,
            positional=not POSITIONAL.isdisjoint(self._pinned.names),
        )

    def physical(self, file_schema: pa.Schema) -> list[str]:
        """Return the columns of the file with the wanted field ids.

        Raises:
            MissingFieldIds: the file has no field ids and the table no name mapping (ICE-6.14).
        """
        keys = {column.key for column in self._wanted}
        found = self._pinned.fields.found(file_schema, self._piece.path)
        return [column.name for column in found if column.key in keys]

    def conform(self, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        """Convert a batch to the pinned schema, followed by columns for keys, with few copies.

        Args:
            batch: decoded rows that are consecutive in the file.
            position: zero-based physical position of the first of them.

        Raises:
            MissingFieldIds: see `physical`.
            SchemaIncompatible: a column cannot be promoted to the pinned type.
        """
        projection = self._pinned.projections.get(
            batch.schema, self._read_as, lambda: self.projection(batch.schema)
        )
        projected = projection.apply(batch, self._piece.path)
        hidden, names = self._hidden, self._names
        if len(self._pinned.own) == len(names) and not hidden:
            return projected
        # Metadata columns stand between those of the table, keys outside of their structs.
        own = dict(zip(self._pinned.own, projected.columns, strict=False))
        arrays = [
            own[name]
            if name in own
            else metadata_column(name, projected, self._piece, position, self._kind)
            for name in names
        ]
        roots = projected.columns[projected.num_columns - len(hidden) :]
        arrays += [key.of(root) for key, root in zip(hidden, roots, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, [*names, *(key.name for key in hidden)])

    def projection(self, schema: pa.Schema) -> Projection:
        """Return how the columns of a file's schema become those of the table that are read."""
        values = constants(self._values, self._wanted)
        found = self._pinned.fields.found(schema, self._piece.path)
        return Projection(self._wanted, found, values, self._piece.path)
