"""Read what the footers of new files say, side by side, and once: for the columns and the plan.

Text files have none: their columns are declared or inferred, and their rows estimated.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from tidegate.errors import FileOfOtherColumns, TerminalError
from tidegate.physical import ParquetRows
from tidegate.physical.streamed import StreamedRows
from tidegate.physical.text_types import widened, without_nulls
from tidegate.read.open_piece import damage_named
from tidegate.source.files.columns import joined
from tidegate.source.files.reader import is_as_listed, open_listed
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidegate.physical import PhysicalRows
    from tidegate.source.files.formats import FolderFormat
    from tidegate.source.files.listing import ListedFile

_THREADS = 2
_FILES_PER_CALL = 64
"""Submitting one file to a thread costs more than reading its footer."""

_MOST_KEPT = 100_000
"""Most files of which something is kept; others are read once more."""

_FEW_CHUNKS = 256
"""Most column chunks of a footer in which bounds are looked up before they are asked for."""

_Said = TypeVar("_Said")

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


def side_by_side(
    files: Sequence[ListedFile], read: Callable[[ListedFile], _Said]
) -> Iterator[_Said]:
    """Read files in threads, many per call, and yield the results in their order."""
    calls = [files[at : at + _FILES_PER_CALL] for at in range(0, len(files), _FILES_PER_CALL)]
    with ThreadPoolExecutor(_THREADS) as pool:
        for found in pool.map(lambda call: [read(file) for file in call], calls):
            yield from found


class Footers:
    """The footers of one directory: what was read for the columns is there for the plan.

    *Runs on:* the planner. *Failure:* nothing is written; what is not kept is read again.
    """

    def __init__(self, root: str, format: FolderFormat) -> None:
        """Prepare.

        Args:
            root: the directory.
            format: of its files.
        """
        self._root = root
        self._format = format
        self._kept: dict[ListedFile, Footer] = {}
        self._schemas: dict[bytes, pa.Schema] = {}
        self._strange: dict[ListedFile, FileOfOtherColumns] = {}

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
        is_known = kept is not None and kept.tells(column)
        if (
            kept is not None
            and is_known
            and is_as_listed(self._path(file), file.size, file.modified)
        ):
            return kept
        return self._read(file, column, pinned)

    def _told(
        self, files: Sequence[ListedFile], known: pa.Schema
    ) -> Iterator[tuple[str, pa.Schema | TerminalError]]:
        """Yield the path of each file with its columns, or with why its rows are not read."""
        names = dict.fromkeys(known.names)
        for file, said in zip(files, side_by_side(files, self._schema), strict=True):
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
        path, (size, modified, tail) = self._path(file), file[1:]
        if not self._format.tells_rows and is_as_listed(path, size, modified):
            # A text would be hashed once more; whoever reads its rows does.
            tail = ""
        with open_listed(path, size, modified, tail, self._format, pinned) as opened:
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
