"""Read plain files: columns by name, partition columns from the path (PC-R02)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa

from tidegate.errors import (
    FileOfOtherFormat,
    ListedFileChanged,
    ListedFileGone,
    SchemaIncompatible,
    SourceFileDamaged,
    SourceRowInvalid,
    TidegateError,
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
    from tidegate.source.files.listing import ListedFile
    from tidegate.source.files.revision_folders import ListedFiles
    from tidegate.storage import FileDetails, Storage


MODIFIED, TAIL, TAG, PARTITION = "modified", "tail", "tag", "partition"
"""Details of a slice: the file's modification time in nanoseconds since 1970, the hash of its end
if it was listed, the tag of an object, and path values."""
_HALF = 1 << 63
_TITLES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}


class FilesReader:
    """The `SliceReader` of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, config: FilesSourceConfig, files: ListedFiles) -> None:
        self._files = files
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
        return open_slice(self._files, piece.slice, self._format, self.own)

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
        listed = Listed.of(piece.slice)
        place, opened = find_listed(self._files, piece.path, listed, self._format, self.own)
        with opened as file:
            if not isinstance(file, ParquetRows):
                return None
            names = self.physical_columns(file.schema)
            if names != file.schema.names or not is_whole(piece, file):
                return None
            projection = self._project(file.schema, piece)
            if projection.passing != tuple(names):
                return None
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

    def __init__(self, config: FilesSourceConfig, files: ListedFiles) -> None:
        """Prepare.

        Args:
            config: the pipeline's `source`.
            files: opens its files.
        """
        self._config = config
        self._files = files

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.reader(pin).schema

    def settling(self, pin: Pin) -> None:
        """Files are only ever added: there is nothing to settle."""
        del pin

    def reader(self, pin: Pin) -> FilesReader:
        """Return the reading side."""
        return FilesReader(pin, self._config, self._files)


class Listed(NamedTuple):
    """What a listing says of a file, besides its path; see `ListedFile`."""

    size: int
    modified: int
    tail: str = ""
    tag: str = ""

    @classmethod
    def of(cls, slice: FileSlice) -> Self:
        """Return what the listing of a slice's window said."""
        details = slice.details
        tail, tag = details.get(TAIL, ""), details.get(TAG, "")
        return cls(slice.file_bytes, details[MODIFIED], tail, tag)


def open_slice(
    files: ListedFiles,
    slice: FileSlice,
    format: FolderFormat = PARQUET,
    columns: pa.Schema | None = None,
) -> PhysicalRows:
    """Open the file of a slice; raises as `open_listed`."""
    return open_listed(files, slice.path, Listed.of(slice), format, columns)


def open_listed(
    files: ListedFiles,
    path: str,
    listed: Listed,
    format: FolderFormat = PARQUET,
    columns: pa.Schema | None = None,
) -> PhysicalRows:
    """Open a file that a listing names and compare it with the listing.

    A file whose end was listed is compared by it, whatever its time: it may have been touched, or
    rewritten with its time kept. An object that has its tag is the same one.

    Args:
        files: opens them.
        path: of the file.
        listed: what the listing says of it.
        format: of the files of the folder.
        columns: the types of columns, for files that do not tell them.

    Raises:
        ListedFileGone: it was deleted after it was listed.
        ListedFileChanged: it has another length or end; without a listed end, it was written since.
        FileOfOtherFormat: it has another format.
        SourceFileDamaged: it has no footer, or may not be read.
        SourceRowInvalid: its first rows are no rows.
        StorageSilent: the file system or store does not answer now (Transient).
    """
    return find_listed(files, path, listed, format, columns)[1]


def find_listed(
    files: ListedFiles,
    path: str,
    listed: Listed,
    format: FolderFormat,
    columns: pa.Schema | None,
) -> tuple[str, PhysicalRows]:
    """Open a file as `open_listed`, and return where it stands as well."""
    try:
        file, found = files.open(path)
    except FileNotFoundError as gone:
        raise ListedFileGone(path=path) from gone
    except OSError as refused:
        raise (
            silence_of(path, refused) or SourceFileDamaged(path=path, problem=str(refused))
        ) from refused
    try:
        difference = _difference(file, listed, found, whole=not format.tells_rows)
        if difference is None:
            _refuse_other_format(path, file, format)
            file.seek(0)
            return found.path, format.open(file, path, columns)
    except FileNotFoundError as gone:
        # Another object has its name, or none, since it was opened.
        file.close()
        raise ListedFileGone(path=path) from gone
    except (pa.ArrowException, OSError) as broken:
        file.close()
        raise (silence_of(path, broken) or _unreadable(files, path, broken, format)) from broken
    file.close()
    raise ListedFileChanged(path=path, problem=difference)


def _refuse_other_format(path: str, file: pa.NativeFile, format: FolderFormat) -> None:
    """Refuse a file that its first bytes tell to be no text: as text, it may be one odd row."""
    if not format.tells_rows:
        other = binary_format(path, file.read_at(min(LONGEST, file.size()), 0))
        if other is not None:
            file.close()
            raise FileOfOtherFormat(path=path, problem=f"one of format {other}", format=format.name)


def _unreadable(
    files: ListedFiles, path: str, broken: Exception, format: FolderFormat
) -> SourceFileDamaged:
    """Return what is wrong with a file that has no footer: its format, or its content."""
    if isinstance(broken, InvalidRow):
        problem = SourceRowInvalid.said(broken.row, broken.column, broken.problem)
        return SourceRowInvalid(path=path, problem=problem)
    if not format.tells_rows:
        return SourceFileDamaged(path=path, problem=str(broken))
    try:
        with files.open(path)[0] as file:
            other = other_format(path, file.read(LONGEST), format.name)
    except OSError:
        other = None
    if other is not None:
        return FileOfOtherFormat(path=path, problem=f"one of format {other}", format=format.name)
    name = _TITLES.get(format.name, format.name)
    return SourceFileDamaged(path=path, problem=f"no {name} footer: {broken}")


def _difference(
    file: pa.NativeFile, listed: Listed, found: FileDetails, *, whole: bool
) -> str | None:
    """Return how an open file differs from what was listed; None if it does not.

    Args:
        file: as it was opened.
        listed: what the listing says.
        found: what is known of the open file.
        whole: whether all of a file is hashed.
    """
    if found.size != listed.size:
        return f"{listed.size} bytes, found {found.size}"
    if listed.tag and found.tag == listed.tag:
        return None
    written = _as_listed(found.modified)
    is_of_then = written == listed.modified and found.tag == listed.tag
    if listed.tail:
        if tail_of(file, whole=whole) == listed.tail:
            return None
        if written == listed.modified:
            moment = _moment(listed.modified)
            return f"what was written at {moment}, found other content of that time"
    elif is_of_then:
        return None
    now, then = _moment(written), _moment(listed.modified)
    return f"what was written at {then}, found what was written at {now}"


def is_as_listed(storage: Storage, path: str, listed: ListedFile) -> bool:
    """Return whether a file stands as a listing names it; opens nothing."""
    try:
        found = storage.details(path)
    except TidegateError:
        # Opening it tells what is wrong.
        return False
    if found is None:
        return False
    return (found.size, _as_listed(found.modified), found.tag) == listed.stamp


def _as_listed(nanoseconds: int) -> int:
    """Return a time as Arrow returns it: in 64 bits, which wrap after 2262 and before 1677."""
    return (nanoseconds + _HALF) % (2 * _HALF) - _HALF


def _moment(nanoseconds: int) -> str:
    """Return a time in the format of `stat` and `touch -d`."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d %H:%M:%S}.{rest:09}Z"
