"""Read what the footers of new files say, side by side, and once: for the columns and the plan."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from tidegate.errors import TerminalError
from tidegate.source.files.columns import joined
from tidegate.source.files.reader import is_as_listed, open_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tidegate.physical import ParquetRows
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
    """How many row groups it has."""
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
    """The files that could not be read, by path; an error only once their rows are needed."""


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

    def __init__(self, root: str) -> None:
        """Prepare.

        Args:
            root: the directory.
        """
        self._root = root
        self._kept: dict[ListedFile, Footer] = {}
        self._schemas: dict[bytes, pa.Schema] = {}

    def columns(self, files: Sequence[ListedFile], known: pa.Schema) -> FolderColumns:
        """Add the columns of files to those that are known.

        Args:
            files: in the order in which their columns are added.
            known: of the files before them.

        Raises:
            StorageSilent: the file system does not answer now (Transient).
        """
        found = list(side_by_side(files, lambda file: (file.path, self._schema(file))))
        unread = {path: said for path, said in found if isinstance(said, TerminalError)}
        readable = dict.fromkeys(said for path, said in found if path not in unread)
        return FolderColumns(joined(known, readable), unread)

    def of(self, file: ListedFile, column: str | None) -> Footer:
        """Return the footer of a file that is as it was listed, and forget it.

        Args:
            file: below the root.
            column: the one whose bounds are wanted.

        Raises:
            ListedFileGone, ListedFileChanged, SourceFileDamaged, StorageSilent: see `open_listed`.
        """
        kept = self._kept.pop(file, None)
        is_known = kept is not None and kept.tells(column)
        if (
            kept is not None
            and is_known
            and is_as_listed(self._path(file), file.size, file.modified)
        ):
            return kept
        return self._read(file, column)

    def _schema(self, file: ListedFile) -> pa.Schema | TerminalError:
        try:
            footer = self._read(file, None)
        except TerminalError as unreadable:
            return unreadable
        if len(self._kept) < _MOST_KEPT:
            self._kept[file] = footer
        return footer.schema

    def _read(self, file: ListedFile, column: str | None) -> Footer:
        with open_listed(self._path(file), *file[1:]) as opened:
            schema = opened.schema
            # Most files have equal ones.
            schema = self._schemas.setdefault(schema.serialize().to_pybytes(), schema)
            bounds = {} if column else _bounds_of_times(opened)
            if column is not None and column in schema.names:
                bounds[column] = opened.raw_bounds(column)
            return Footer(schema, opened.rows, len(opened.row_groups), bounds)

    def _path(self, file: ListedFile) -> str:
        return f"{self._root}/{file.path}"


def _bounds_of_times(file: ParquetRows) -> dict[str, RawBounds | None]:
    """Read what a plan will ask for, as long as nobody has said which column it is."""
    bounds: dict[str, RawBounds | None] = {}
    if len(file.row_groups) * len(file.schema) <= _FEW_CHUNKS:
        for field in file.schema:
            if pa.types.is_timestamp(field.type) or pa.types.is_date32(field.type):
                # What cannot be read is asked for again, and told, by the plan.
                with suppress(pa.ArrowException):
                    bounds[field.name] = file.raw_bounds(field.name)
    return bounds
