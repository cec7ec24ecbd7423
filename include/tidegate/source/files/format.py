"""Read plain Parquet files: columns by name, partition columns from the path (PC-R02)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import (
    ListedFileChanged,
    ListedFileGone,
    SchemaIncompatible,
    SourceFileDamaged,
)
from tidegate.model.partition import Partition
from tidegate.physical import ParquetRows
from tidegate.physical.int96 import is_zoneless
from tidegate.physical.removed import WHOLE
from tidegate.physical.whole_file import WholeFile, is_whole
from tidegate.source.files.columns import children_of, decode_schema, wanted
from tidegate.source.files.partition_values import parse_values
from tidegate.source.projection import Found, Projection, Projections
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.model.plan import Piece, Pin
    from tidegate.physical.removed import FileStates


class FilesFormat:
    """The reading side of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, keys: Mapping[str, str], default_name: str) -> None:
        self._keys = keys
        self._default_name = default_name
        self.schema = decode_schema(pin.details["schema"])
        """The schema of every conformed batch."""
        self._wanted = tuple(wanted(column) for column in self.schema)
        self._projections = Projections()

    def open(self, piece: Piece) -> ParquetRows:
        """Open the piece's file; raises as `open_listed`."""
        return open_listed(piece.path, piece.details["length"], piece.details["modified"])

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        """Name the columns that come from the file; those of the path are not among them."""
        del piece
        return [
            column.name
            for column in self.schema
            if column.name not in self._keys and column.name in file_schema.names
        ]

    def removed(self, piece: Piece) -> FileStates:
        """Say that nothing is: a plain file is read as it is."""
        del piece
        return WHOLE

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        """Give a batch the pinned schema; a column that the file lacks is NULL.

        Raises:
            SchemaIncompatible: a column cannot be promoted to the pinned type.
        """
        del position
        projection = self._projections.get(
            batch.schema, piece.details["partition"], lambda: self._project(batch.schema, piece)
        )
        return projection.apply(batch, piece.path)

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file; raises as `open` and `conform`."""
        with self.open(piece) as file:
            names = self.physical_columns(piece, file.schema)
            if names != file.schema.names or not is_whole(piece, file):
                return None
            projection = self._project(file.schema, piece)
            if projection.passing != tuple(names):
                return None
            return WholeFile(piece.path, file.footer, projection.passing, projection.repeated)

    def check(self, piece: Piece, file_schema: pa.Schema) -> None:
        """Make sure that a file can be read, before a window is planned on it.

        Raises:
            SchemaIncompatible: as `conform`.
        """
        names = self.physical_columns(piece, file_schema)
        for name in names:
            found = file_schema.names.count(name)
            if found > 1:
                raise SchemaIncompatible(
                    path=piece.path,
                    column=name,
                    expected="one column of that name",
                    found=f"{found} of them",
                )
        self._project(pa.schema([file_schema.field(name) for name in names]), piece)

    def _project(self, schema: pa.Schema, piece: Piece) -> Projection:
        values = Partition(tuple(piece.details["partition"].items()))
        constants = parse_values(values, self._keys, self._default_name, piece.path)
        found = [_found(column) for column in schema if column.name not in self._keys]
        return Projection(self._wanted, found, constants, piece.path)


def open_listed(path: str, length: int, modified: int) -> ParquetRows:
    """Open a file that a listing names and compare it with the listing.

    Args:
        path: of the file.
        length: bytes that it had.
        modified: when it was written, in nanoseconds since 1970.

    Raises:
        ListedFileGone: it was deleted after it was listed.
        ListedFileChanged: it is not as long as it was, or was written since.
        SourceFileDamaged: it has no footer, or may not be read.
        StorageSilent: the file system does not answer now (Transient).
    """
    try:
        file = pa.OSFile(path)
        found, written = file.size(), Path(path).stat().st_mtime_ns
    except FileNotFoundError as gone:
        raise ListedFileGone(path=path) from gone
    except OSError as refused:
        raise (
            silence_of(path, refused) or SourceFileDamaged(path=path, problem=str(refused))
        ) from refused
    if found != length:
        file.close()
        raise ListedFileChanged(path=path, problem=f"{length} bytes, found {found}")
    if written != modified:
        file.close()
        problem = (
            f"what was written at {_moment(modified)}, found what was written at {_moment(written)}"
        )
        raise ListedFileChanged(path=path, problem=problem)
    try:
        return ParquetRows(file)
    except (pa.ArrowInvalid, OSError) as broken:
        file.close()
        damaged = SourceFileDamaged(path=path, problem=f"no Parquet footer: {broken}")
        raise (silence_of(path, broken) or damaged) from broken


def _moment(nanoseconds: int) -> str:
    """Write a time as a shell's `stat` and `touch -d` do."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d %H:%M:%S}.{rest:09}Z"


def _found(column: pa.Field) -> Found:
    children = tuple(_found(child) for child in children_of(column.type))
    return Found(column.name, column.name, column.type, children, is_zoneless(column))
