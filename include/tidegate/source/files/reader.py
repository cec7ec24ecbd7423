"""Read plain files: columns by name, partition columns from the path (PC-R02)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tidegate.errors import (
    FileOfOtherFormat,
    ListedFileChanged,
    ListedFileGone,
    SchemaIncompatible,
    SourceFileDamaged,
    SourceRowInvalid,
)
from tidegate.model.ignored import Ignored
from tidegate.model.partition import Partition
from tidegate.physical import ParquetRows
from tidegate.physical.streamed import InvalidRow
from tidegate.physical.whole_file import WholeFile, is_whole
from tidegate.read.merge import Conforming, MergedPiece
from tidegate.read.pieces import read_pieces
from tidegate.read.removed import WHOLE
from tidegate.source.files.formats import PARQUET, format_of
from tidegate.source.files.metadata import FileFacts, metadata_values
from tidegate.source.files.other_formats import LONGEST, binary_format, other_format
from tidegate.source.files.partition_values import parse_values
from tidegate.source.files.revision_folders import place_of
from tidegate.source.files.tails import tail_of
from tidegate.source.named_columns import decode_schema, found_column, wanted_column
from tidegate.source.projection import Projection, Projections
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from tidegate.config import FilesSourceConfig
    from tidegate.model.file_slice import FileSlice
    from tidegate.model.plan import Piece, Pin
    from tidegate.physical import PhysicalRows
    from tidegate.read.merge import ReadOptions
    from tidegate.source.files.formats import FolderFormat


MODIFIED, TAIL, PARTITION = "modified", "tail", "partition"
"""Details of a slice: the file's modification time in nanoseconds since 1970, the hash of its end
if it was listed, and path values."""
_HALF = 1 << 63
_TITLES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}


class FilesReader:
    """The `SliceReader` of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, config: FilesSourceConfig) -> None:
        self._keys: Mapping[str, str] = config.partition_by
        self._default_name = config.default_partition_name
        self._format = format_of(config)
        self.schema = decode_schema(pin.details["schema"])
        """The schema of every conformed batch."""
        self._metadata = {
            name: word for name, word in config.named_metadata.items() if name in self.schema.names
        }
        self._elsewhere = {*self._keys, *self._metadata}
        """The columns whose values do not stand in files."""
        self.own = pa.schema(
            [column for column in self.schema if column.name not in self._elsewhere]
        )
        """The columns that files may have."""
        self._wanted = tuple(wanted_column(column) for column in self.schema)
        self._projections = Projections()

    @property
    def ignored(self) -> Ignored:
        """None: files have no deletes."""
        return Ignored()

    def batches(self, pieces: Iterable[Piece], options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Read pieces; raises as `read_pieces`, `open_listed` and `conform`."""
        return read_pieces(pieces, self, options)

    def merge_read(self, file: PhysicalRows, piece: Piece) -> MergedPiece:
        """Return how a piece is read of its open file."""
        conforming = Conforming(
            self.physical_columns(file.schema),
            lambda batch, _: self.conform(batch, piece),
        )
        return MergedPiece(file, piece, conforming, WHOLE)

    def alike(self, piece: Piece) -> Hashable:
        """Return the values of the path: all else stands in the file, unless files are named."""
        return None if self._metadata else tuple(piece.slice.details[PARTITION].items())

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's file; raises as `open_listed`."""
        return open_slice(piece.slice, self._format, self.own)

    def physical_columns(self, file_schema: pa.Schema) -> list[str]:
        """Return the columns that come from a file, without those of the path."""
        return [column.name for column in self.own if column.name in file_schema.names]

    def conform(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        """Convert a batch to the pinned schema; a column that the file lacks is NULL.

        Raises:
            SchemaIncompatible: a column cannot be promoted to the pinned type.
        """
        values = piece.slice.details[PARTITION]
        if self._metadata:
            values = {**values, "": piece.path}
        projection = self._projections.get(
            batch.schema, values, lambda: self._project(batch.schema, piece)
        )
        return projection.apply(batch, piece.path)

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file; raises as `open` and `conform`."""
        if self._format.name != PARQUET.name:
            return None
        with self.open(piece) as file:
            if not isinstance(file, ParquetRows):
                return None
            names = self.physical_columns(file.schema)
            if names != file.schema.names or not is_whole(piece, file):
                return None
            projection = self._project(file.schema, piece)
            if projection.passing != tuple(names):
                return None
            place = place_of(piece.path)
            return WholeFile(place, file.footer, projection.passing, projection.repeated)

    def check(self, piece: Piece, file_schema: pa.Schema) -> None:
        """Check that a file can be read, before a window with it is planned.

        Raises:
            SchemaIncompatible: as `conform`.
        """
        names = self.physical_columns(file_schema)
        self._refuse_renamed(piece, file_schema)
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

    def _refuse_renamed(self, piece: Piece, file_schema: pa.Schema) -> None:
        """Refuse a file that has another column in place of a declared one.

        A column that it only lacks is NULL, as in files that tell their own columns.
        """
        declared = self._format.declared
        if declared is None:
            return
        lacking = [name for name in declared.names if name not in {*file_schema.names, *self._keys}]
        others = [name for name in file_schema.names if name not in {*declared.names, *self._keys}]
        if lacking and others:
            names = ", ".join(repr(name) for name in others)
            raise SchemaIncompatible(
                path=piece.path,
                column=lacking[0],
                expected="a column of that name, as `source.columns` declares it",
                found=f"others that it does not declare: {names}",
            )

    def _project(self, schema: pa.Schema, piece: Piece) -> Projection:
        slice = piece.slice
        values = Partition(tuple(slice.details[PARTITION].items()))
        constants = parse_values(values, self._keys, self._default_name, piece.path)
        facts = FileFacts(slice.path, slice.file_bytes, slice.details[MODIFIED])
        constants |= metadata_values(self._metadata, facts)
        own = [found_column(column) for column in schema if column.name not in self._elsewhere]
        return Projection(self._wanted, own, constants, piece.path)


class FilesReading:
    """The `PinnedReading` of one directory."""

    def __init__(self, config: FilesSourceConfig) -> None:
        """Prepare."""
        self._config = config

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.reader(pin).schema

    def settling(self, pin: Pin) -> None:
        """Files are only ever added: there is nothing to settle."""
        del pin

    def reader(self, pin: Pin) -> FilesReader:
        """Return the reading side."""
        return FilesReader(pin, self._config)


def open_slice(
    slice: FileSlice, format: FolderFormat = PARQUET, columns: pa.Schema | None = None
) -> PhysicalRows:
    """Open the file of a slice; raises as `open_listed`."""
    details = slice.details
    listed = (slice.file_bytes, details[MODIFIED], details.get(TAIL, ""))
    return open_listed(slice.path, *listed, format, columns)


def open_listed(
    path: str,
    length: int,
    modified: int,
    tail: str,
    format: FolderFormat = PARQUET,
    columns: pa.Schema | None = None,
) -> PhysicalRows:
    """Open a file that a listing names and compare it with the listing.

    A file whose end was listed is compared by it, whatever its time: it may have been touched, or
    rewritten with its time kept.

    Args:
        path: of the file.
        length: bytes that it had.
        modified: when it was written, in nanoseconds since 1970.
        tail: the hash of its end; empty if only its time is known.
        format: of the files of the folder.
        columns: the types of columns, for files that do not tell them.

    Raises:
        ListedFileGone: it was deleted after it was listed.
        ListedFileChanged: it has another length or end; without a listed end, it was written since.
        FileOfOtherFormat: it has another format.
        SourceFileDamaged: it has no footer, or may not be read.
        SourceRowInvalid: its first rows are no rows.
        StorageSilent: the file system does not answer now (Transient).
    """
    try:
        place = place_of(path)
        file = pa.OSFile(place)
        written = _as_listed(Path(place).stat().st_mtime_ns)
    except FileNotFoundError as gone:
        raise ListedFileGone(path=path) from gone
    except OSError as refused:
        raise (
            silence_of(path, refused) or SourceFileDamaged(path=path, problem=str(refused))
        ) from refused
    try:
        whole = not format.tells_rows
        difference = _difference(file, length, modified, written, _Tail(tail, whole))
        if difference is None:
            _refuse_other_format(path, file, format)
            file.seek(0)
            return format.open(file, path, columns)
    except (pa.ArrowException, OSError) as broken:
        file.close()
        raise (silence_of(path, broken) or _unreadable(path, broken, format)) from broken
    file.close()
    raise ListedFileChanged(path=path, problem=difference)


def _refuse_other_format(path: str, file: pa.NativeFile, format: FolderFormat) -> None:
    """Refuse a file that its first bytes tell to be no text: as text, it may be one odd row."""
    if not format.tells_rows:
        other = binary_format(path, file.read_at(min(LONGEST, file.size()), 0))
        if other is not None:
            file.close()
            raise FileOfOtherFormat(path=path, problem=f"one of format {other}", format=format.name)


def _unreadable(path: str, broken: Exception, format: FolderFormat) -> SourceFileDamaged:
    """Return what is wrong with a file that has no footer: its format, or its content."""
    if isinstance(broken, InvalidRow):
        problem = SourceRowInvalid.said(broken.row, broken.column, broken.problem)
        return SourceRowInvalid(path=path, problem=problem)
    if not format.tells_rows:
        return SourceFileDamaged(path=path, problem=str(broken))
    try:
        with Path(path).open("rb") as file:
            other = other_format(path, file.read(LONGEST), format.name)
    except OSError:
        other = None
    if other is not None:
        return FileOfOtherFormat(path=path, problem=f"one of format {other}", format=format.name)
    name = _TITLES.get(format.name, format.name)
    return SourceFileDamaged(path=path, problem=f"no {name} footer: {broken}")


class _Tail(NamedTuple):
    digest: str
    whole: bool
    """Whether it is one of the whole file."""


def _difference(
    file: pa.NativeFile, length: int, modified: int, written: int, tail: _Tail
) -> str | None:
    """Return how an open file differs from what was listed; None if it does not."""
    found = file.size()
    if found != length:
        return f"{length} bytes, found {found}"
    if tail.digest:
        if tail_of(file, whole=tail.whole) == tail.digest:
            return None
        if written == modified:
            return f"what was written at {_moment(modified)}, found other content of that time"
    elif written == modified:
        return None
    return f"what was written at {_moment(modified)}, found what was written at {_moment(written)}"


def is_as_listed(path: str, length: int, modified: int) -> bool:
    """Return whether a file stands as a listing names it; opens nothing."""
    try:
        found = Path(path).stat()
    except OSError:
        return False
    return found.st_size == length and _as_listed(found.st_mtime_ns) == modified


def _as_listed(nanoseconds: int) -> int:
    """Return a time as Arrow returns it: in 64 bits, which wrap after 2262 and before 1677."""
    return (nanoseconds + _HALF) % (2 * _HALF) - _HALF


def _moment(nanoseconds: int) -> str:
    """Return a time in the format of `stat` and `touch -d`."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d %H:%M:%S}.{rest:09}Z"
