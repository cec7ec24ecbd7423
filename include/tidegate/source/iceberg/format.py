"""Read the files of a pinned table: open, choose columns, conform by field id (ICE-6.11–6.19)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, parse_mapping_from_json

from tidegate import physical
from tidegate.errors import InvalidNameMapping, MissingFieldIds, SourceFileDamaged
from tidegate.source.iceberg.columns import (
    constants,
    found_by_id,
    found_by_name,
    has_field_ids,
    wanted_columns,
)
from tidegate.source.iceberg.paths import open_location
from tidegate.source.projection import Found, Projection, Projections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.io import FileIO

    from tidegate.model.plan import Piece, Pin
    from tidegate.physical import PhysicalRows


class IcebergFormat:
    """The reading side of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, files: FileIO, source: str) -> None:
        self._files = files
        self._source = source
        self._mapping_text: str | None = pin.details["name_mapping"]
        self._wanted = wanted_columns(Schema.model_validate_json(pin.details["schema"]))
        self._projections = Projections()

    @property
    def schema(self) -> pa.Schema:
        """The schema of every conformed batch."""
        return pa.schema([pa.field(column.name, column.type) for column in self._wanted])

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's data file; raises as `open_rows`."""
        return open_rows(self._files, piece, self._source)

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the columns of the file whose field ids are wanted.

        Raises:
            MissingFieldIds: the file has no field ids and the table no name mapping (ICE-6.14).
        """
        keys = {column.key for column in self._wanted}
        return [
            column.name for column in self._found(file_schema, piece.path) if column.key in keys
        ]

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        """Give a batch the pinned schema; columns that fit are passed on uncopied.

        Raises:
            MissingFieldIds: see `physical_columns`.
            SchemaIncompatible: a column cannot be promoted to the pinned type.
        """
        del position
        projection = self._projections.get(
            batch.schema, piece.details["partition"], lambda: self._project(batch.schema, piece)
        )
        return projection.apply(batch, piece.path)

    def _project(self, schema: pa.Schema, piece: Piece) -> Projection:
        found = self._found(schema, piece.path) if len(schema) else ()
        return Projection(
            self._wanted, found, constants(piece.details["partition"], self._wanted), piece.path
        )

    def _found(self, schema: pa.Schema, path: str) -> Sequence[Found]:
        if has_field_ids(schema):
            return found_by_id(schema)
        if self._mapping is None:
            raise MissingFieldIds(path=path)
        return found_by_name(schema, self._mapping)

    @cached_property
    def _mapping(self) -> list[MappedField] | None:
        if self._mapping_text is None:
            return None
        try:
            return list(parse_mapping_from_json(self._mapping_text).root)
        except ValidationError as broken:
            raise InvalidNameMapping(source=self._source, problem=str(broken)) from broken


def open_rows(files: FileIO, piece: Piece, source: str) -> PhysicalRows:
    """Open a piece's data file and compare its length with the manifest's.

    Raises:
        SourceFileGone: it was deleted after planning.
        SourceFileDamaged: it is not as long as the manifest says, or has no footer or header.
        SourceUnreachable: the store did not answer (Transient).
    """
    file = open_location(files, piece.path, source, piece.details["length"])
    try:
        return physical.open_rows(file, piece.details["format"])
    except (OSError, pa.ArrowException) as broken:
        raise SourceFileDamaged(path=piece.path, problem=str(broken)) from broken
