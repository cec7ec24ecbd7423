"""Read what the footers of new files say, side by side, and once: for the columns and the plan.

Text files have none: their columns are declared or inferred, and their rows estimated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import FileOfOtherColumns, TerminalError
from tidegate.physical import ParquetRows
from tidegate.physical.streamed import StreamedRows
from tidegate.physical.text_types import widened, without_nulls
from tidegate.read.open_piece import damage_named
from tidegate.source.files.columns import joined
from tidegate.source.files.looks import looked_at
from tidegate.source.files.reader import Listed, is_as_listed, open_listed
from tidegate.source.files.tails import tail_of
from tidegate.source.words import first_few
from tidegate.storage import is_object, silence_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.physical import PhysicalRows
    from tidegate.source.files.formats import FolderFormat
    from tidegate.source.files.listing import ListedFile
    from tidegate.source.files.revision_folders import ListedFiles

_MOST_KEPT = 100_000
"""Most files of which something is kept; others are read once more."""

_FEW_CHUNKS = 256
"""Most column chunks of a footer in which bounds are looked up before they are asked for."""

RawBounds = tuple[int | None, int | None]
"""The smallest and the largest stored number of a column; None: all is NULL."""


@dataclass(frozen=True)
class Footer:
    """What a plan has to know of a file."""

    schema: pa.Schema
    rows: int
    groups: int
    """How many row groups it has; 0 if it does not tell its rows, which are an estimate then."""
    bounds: Mapping[str, RawBounds | None]
    """Of columns that may hold event times; None where a row group does not say."""

    def tells(self, column: str | None) -> bool:
        """Return whether it says all of a column, which the file need not have."""
        return column is None or column in self.bounds or column not in self.schema.names


@dataclass(frozen=True)
class FolderColumns:
    """The columns of a folder, as far as its files could be read."""

    schema: pa.Schema
    unread: Mapping[str, TerminalError] = field(default_factory=dict)
    """The files that could not be read or are of another table, by path; an error only once their
    rows are needed."""


class Footers:
    """The footers of one directory: what was read for the columns is there for the plan.

    *Runs on:* the planner. *Failure:* nothing is written; what is not kept is read again.
    """

    def __init__(self, root: str, files: ListedFiles, format: FolderFormat) -> None:
        """Prepare.

        Args:
            root: the directory.
            files: opens its files.
            format: of its files.
        """
        self._root = root
        self._files = files
        self._format = format
        self._kept: dict[ListedFile, Footer] = {}
        self._schemas: dict[bytes, pa.Schema] = {}
        self._strange: dict[ListedFile, FileOfOtherColumns] = {}

    def with_tail(self, file: ListedFile) -> ListedFile:
        """Return a file that was just listed with the hash of its end, or of all of a text.

        What its footer says is kept for the columns and the plan, as far as it can be read.

        Returns:
            Without the hash if it cannot be read, or has another length by now.

        Raises:
            StorageSilent: the file system or store does not answer now (Transient).
        """
        path = self._path(file)
        try:
            opened, found = self._files.open(path)
            with opened:
                if found.size != file.size:
                    return file
                tail = tail_of(opened, whole=not self._format.tells_rows)
                listed = file._replace(tail=tail, tag=found.tag)
                if self._format.tells_rows and len(self._kept) < _MOST_KEPT:
                    self._keep(listed, opened)
                return listed
        except OSError as refused:
            silent = silence_of(path, refused)
            if silent is not None:
                raise silent from refused
            return file

    def _keep(self, file: ListedFile, opened: pa.NativeFile) -> None:
        opened.seek(0)
        # What is wrong with a file is told when its columns are read.
        with (
            suppress(OSError, pa.ArrowException, TerminalError),
            self._format.open(opened, file.path) as rows,
        ):
            self._kept[file] = self._footer(rows, None, self._path(file))

    def columns(self, files: Sequence[ListedFile], known: pa.Schema) -> FolderColumns:
        """Add the columns of files to those that are known; declared ones are all there are.

        The types of text files are inferred from the first rows of all new ones, and stay. A file
        that has none of the columns before it adds none: it has another delimiter, or belongs to
        another table.

        Args:
            files: in the order in which their columns are added.
            known: of the files before them.

        Raises:
            StorageSilent: the file system does not answer now (Transient).
        """
        if self._format.declared is not None:
            return FolderColumns(self._format.declared)
        found = list(self._told(files, known))
        unread = {path: said for path, said in found if isinstance(said, TerminalError)}
        readable = dict.fromkeys(said for path, said in found if path not in unread)
        if self._format.tells_rows:
            return FolderColumns(joined(known, readable), unread)
        fresh = [
            field.with_type(without_nulls(field.type))
            for field in widened(readable)
            if field.name not in known.names
        ]
        return FolderColumns(pa.schema([*known, *fresh]), unread)

    def of(self, file: ListedFile, column: str | None, pinned: pa.Schema | None = None) -> Footer:
        """Return the footer of a file that is as it was listed, and forget it.

        Args:
            file: below the root.
            column: the one whose bounds are wanted.
            pinned: the types of columns, for files that do not tell them.

        Raises:
            ListedFileGone, ListedFileChanged, SourceFileDamaged, StorageSilent: see `open_listed`.
            FileOfOtherColumns: see `columns`.
        """
        if file in self._strange:
            raise self._strange[file]
        kept = self._kept.pop(file, None)
        if kept is not None and kept.tells(column) and self._stands(file):
            return kept
        return self._read(file, column, pinned)

    def _stands(self, file: ListedFile) -> bool:
        """Return whether a file is as it was a moment ago.

        A store is not asked, because each question is a request: who reads an object compares it.
        """
        return is_object(self._root) or self._is_as_listed(file)

    def _is_as_listed(self, file: ListedFile) -> bool:
        return is_as_listed(self._files.storage, self._path(file), file)

    def _told(
        self, files: Sequence[ListedFile], known: pa.Schema
    ) -> Iterator[tuple[str, pa.Schema | TerminalError]]:
        """Yield the path of each file with its columns, or with why its rows are not read."""
        names = dict.fromkeys(known.names)
        found = looked_at(self._root, files, self._schema)
        for file, said in zip(files, found, strict=True):
            if isinstance(said, TerminalError):
                yield file.path, said
            elif names and said.names and names.keys().isdisjoint(said.names):
                self._strange[file] = FileOfOtherColumns(
                    path=self._path(file), known=first_few([*names]), found=first_few(said.names)
                )
                yield file.path, self._strange[file]
            else:
                names.update(dict.fromkeys(said.names))
                yield file.path, said

    def _schema(self, file: ListedFile) -> pa.Schema | TerminalError:
        kept = self._kept.get(file)
        if kept is not None:
            return kept.schema
        try:
            footer = self._read(file, None)
        except TerminalError as unreadable:
            return unreadable
        if self._format.tells_rows and len(self._kept) < _MOST_KEPT:
            self._kept[file] = footer
        return footer.schema

    def _read(
        self, file: ListedFile, column: str | None, pinned: pa.Schema | None = None
    ) -> Footer:
        path, listed = self._path(file), Listed(file.size, file.modified, file.tail, file.tag)
        is_near_text = not (self._format.tells_rows or is_object(path))
        if is_near_text and self._is_as_listed(file):
            # A text would be hashed once more; whoever reads its rows does. Of an object the tag
            # is compared.
            listed = listed._replace(tail="")
        with open_listed(self._files, path, listed, self._format, pinned) as opened:
            return self._footer(opened, column, path)

    def _footer(self, opened: PhysicalRows, column: str | None, path: str) -> Footer:
        schema = opened.schema
        # Most files have equal ones.
        schema = self._schemas.setdefault(schema.serialize().to_pybytes(), schema)
        if isinstance(opened, StreamedRows):
            with damage_named(path):
                return Footer(schema, opened.estimated_rows(), 0, {})
        bounds = {} if column else _bounds_of_times(opened)
        if column is not None and column in schema.names:
            bounds[column] = _raw_bounds(opened, column)
        return Footer(schema, opened.rows, len(opened.row_groups), bounds)

    def _path(self, file: ListedFile) -> str:
        return f"{self._root}/{file.path}"


def _raw_bounds(file: PhysicalRows, column: str) -> RawBounds | None:
    # Arrow does not expose statistics of ORC stripes, and Avro has none.
    return file.raw_bounds(column) if isinstance(file, ParquetRows) else None


def _bounds_of_times(file: PhysicalRows) -> dict[str, RawBounds | None]:
    """Read what a plan will ask for, as long as nobody has said which column it is."""
    bounds: dict[str, RawBounds | None] = {}
    if len(file.row_groups) * len(file.schema) <= _FEW_CHUNKS:
        for field in file.schema:
            if pa.types.is_timestamp(field.type) or pa.types.is_date32(field.type):
                # What cannot be read is asked for again, and told, by the plan.
                with suppress(pa.ArrowException):
                    bounds[field.name] = _raw_bounds(file, field.name)
    return bounds
