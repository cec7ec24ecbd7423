"""List the files below a root, level by level (PC-R01, R03, R09, P05, P09)."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import fs

from tidegate.errors import (
    FolderNotFound,
    MarkedFileWrong,
    PartitionPathInvalid,
    PartitionValueInvalid,
    RevisionsUnmarked,
    SourceReadTwice,
    SourceUnreachable,
)
from tidegate.model.marker import marked_files
from tidegate.model.partition import Partition
from tidegate.model.revision_folder import REVISIONS
from tidegate.source.files.listing import ListedFile, Listing
from tidegate.source.files.partition_values import parse_values
from tidegate.source.files.revision_folders import revision_folders
from tidegate.source.files.tables import (
    kind_of_folder,
    refuse_inside_of_table,
    refuse_tables_below,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tidegate.config import FilesSourceConfig


@dataclass
class _Walk:
    root: str
    keys: Mapping[str, str]
    default_name: str
    skip_bad: bool
    pattern: re.Pattern[str] | None
    marker: str | None = None
    """Only directories with a file of this name are read, and those below it."""
    until: datetime | None = None
    """Markers of this time or later do not stand yet."""
    unmarked: list[str] = field(default_factory=list)
    """Directories with files that are not read, because no marker stands."""
    files: list[ListedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    """Folder → kind, of tables with files that would be read."""
    places: list[str] = field(default_factory=list)
    """The places that are read: the root and the targets of links, with links resolved."""

    def __post_init__(self) -> None:
        self.places.append(os.path.realpath(self.root))

    def visit(
        self,
        folder: str,
        depth: int,
        table: tuple[str, str] | None = None,
        *,
        is_complete: bool = False,
    ) -> None:
        """List one directory and go down; hidden names are left out at every level (PC-P09).

        Args:
            folder: below the root.
            depth: of the folder.
            table: folder and kind of the table that it is in.
            is_complete: whether the marker of another engine stands above it.
        """
        place = f"{self.root}/{folder}".rstrip("/")
        links = self._links(place, folder)
        entries = sorted(self._entries(place, folder), key=lambda item: item[0])
        if table is None:
            kind = kind_of_folder({name for name, _ in entries}, place)
            table = (place, kind) if kind else None
        if any(name == REVISIONS for name, _ in entries):
            self._visit_revisions(folder, depth)
        is_complete, listed = self._marked(place, is_complete=is_complete)
        for name, entry in entries:
            if name.startswith(("_", ".")):
                continue
            path = f"{folder}/{name}".lstrip("/")
            if name in links and self._leads_back(path):
                self.skipped.append(path)
            elif entry.type == fs.FileType.Directory:
                if not self.keys or self._is_good(path, depth + 1):
                    self.visit(path, depth + 1, table, is_complete=is_complete)
            elif listed is None and not is_complete:
                self.unmarked.append(folder)
            elif (listed is None or name in listed) and self._is_wanted(entry, path, depth):
                self.files.append(ListedFile(path, entry.size, entry.mtime_ns))
                self.tables.update([table] if table else ())

    def _visit_revisions(self, folder: str, depth: int) -> None:
        """List the files of the newest revision that has a directory to itself, and a marker.

        Raises:
            RevisionsUnmarked: no marker is required, which alone tells the directory that counts.
        """
        homes = revision_folders(f"{self.root}/{folder}".rstrip("/"))
        if homes and self.marker is None:
            raise RevisionsUnmarked(source=self.root, folder=posixpath.dirname(homes[0]))
        for home in homes:
            _, listed = self._marked(home, is_complete=False)
            if listed is None:
                continue
            for name, entry in sorted(self._entries(home, folder), key=lambda item: item[0]):
                path = f"{folder}/{name}".lstrip("/")
                if name in listed and self._is_wanted(entry, path, depth):
                    self.files.append(ListedFile(path, entry.size, entry.mtime_ns))
            return
        if homes:
            self.unmarked.append(folder)

    def _marked(self, place: str, *, is_complete: bool) -> tuple[bool, Collection[str] | None]:
        """Return whether all files of a directory and below count, else which of its own do.

        A commit retracts the marker before it changes anything, and writes it last.

        Raises:
            MarkerInvalid: it is a damaged one of Tidegate.
            MarkedFileWrong: a file is not as the standing marker lists it.
        """
        if self.marker is None:
            return True, None
        marker = Path(place) / self.marker
        content = self._standing(marker)
        if content is None:
            return is_complete, None
        listed = marked_files(str(marker), content)
        if listed is None:
            return True, None
        for name, length in listed.items():
            (found,) = _FILES.get_file_info([f"{place}/{name}"])
            if found.type != fs.FileType.File or found.size != length:
                if self._standing(marker) != content:
                    return False, None
                raise MarkedFileWrong(
                    path=f"{place}/{name}",
                    marker=str(marker),
                    expected=f"{length} bytes",
                    found="no file" if found.size is None else f"{found.size} bytes",
                )
        return False, listed.keys()

    def _standing(self, marker: Path) -> bytes | None:
        """Read a marker; None if there is none, or none before the time that is looked at."""
        try:
            written = datetime.fromtimestamp(marker.stat().st_mtime, UTC)
            if self.until is not None and written >= self.until:
                return None
            return marker.read_bytes()
        except FileNotFoundError:
            return None

    def _entries(self, place: str, folder: str) -> Iterator[tuple[str, fs.FileInfo]]:
        """List one directory by name: which of two links to one place is followed depends on it."""
        for entry in _FILES.get_file_info(fs.FileSelector(place)):
            try:
                yield entry.base_name, entry
            except UnicodeDecodeError as unreadable:
                self._refuse_name(folder, unreadable)

    def _links(self, place: str, folder: str) -> set[str]:
        """Name the links in a directory.

        Those that lead to nothing, as to what is not mounted, are named here: Arrow passes them by.

        Raises:
            SourceUnreachable: there is one, and `on_bad_path` says to fail (Transient).
        """
        with os.scandir(place) as entries:
            links = {entry.name: entry.path for entry in entries if entry.is_symlink()}
        lost = [
            name
            for name, link in links.items()
            if not name.startswith(("_", ".")) and not Path(link).exists()
        ]
        for name in sorted(lost):
            path = f"{folder}/{name}".lstrip("/")
            if not self.skip_bad:
                problem = f"the link '{path}' leads to nothing"
                raise SourceUnreachable(source=self.root, problem=problem)
            self.skipped.append(path)
        return set(links)

    def _leads_back(self, path: str) -> bool:
        """Return whether a link leads to what is read already; others are followed."""
        place = os.path.realpath(f"{self.root}/{path}")
        if not any(_overlap(place, known) for known in self.places):
            self.places.append(place)
            return False
        if not self.skip_bad:
            raise SourceReadTwice(source=self.root, path=path, place=place)
        return True

    def _refuse_name(self, folder: str, unreadable: UnicodeDecodeError) -> None:
        problem = f"the name {unreadable.object!r} below '{folder or '.'}' is not UTF-8"
        if not self.skip_bad:
            raise SourceUnreachable(source=self.root, problem=problem) from unreadable
        self.skipped.append(f"{folder}/{unreadable.object!r}".lstrip("/"))

    def _is_wanted(self, entry: fs.FileInfo, path: str, depth: int) -> bool:
        if entry.type != fs.FileType.File or entry.size == 0:
            return False
        if self.pattern and not self.pattern.fullmatch(f"{self.root}/{path}"):
            return False
        folder = path.rpartition("/")[0]
        return depth == len(self.keys) or not self.keys or self._refuse(folder, self._expected)

    def _is_good(self, path: str, depth: int) -> bool:
        """Check a directory at a partition level (PC-R03)."""
        if depth > len(self.keys):
            return self._refuse(path, self._expected)
        try:
            partition = Partition.parse(path, tuple(self.keys)[:depth], self.default_name)
            parse_values(partition, self.keys, self.default_name, path)
        except (PartitionPathInvalid, PartitionValueInvalid):
            if not self.skip_bad:
                raise
            self.skipped.append(path)
            return False
        return True

    def _refuse(self, path: str, expected: str) -> bool:
        if not self.skip_bad:
            raise PartitionPathInvalid(path=path or self.root, expected=expected)
        self.skipped.append(path)
        return False

    @property
    def _expected(self) -> str:
        return "/".join(f"{key}=…" for key in self.keys)


def _overlap(one: str, other: str) -> bool:
    """Return whether two places are the same, or one contains the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


_FILES = fs.LocalFileSystem()


def list_directory(config: FilesSourceConfig, until: datetime | None = None) -> Listing:
    """List the source's files, sorted by path.

    Args:
        config: the pipeline's `source`.
        until: markers that were written at this time or later do not count yet.

    Raises:
        FolderNotFound: the root is not a directory.
        FolderOfTable: it is in a table, or files that would be read are.
        SourceUnreachable: a directory cannot be listed, a name in it cannot be read, or a link
            leads to nothing; nothing is left out silently (PC-R01).
        SourceReadTwice: a link leads to a place that is already read, and `on_bad_path` says
            `fail`.
        MarkerInvalid, MarkedFileWrong: a marker, or a file that it lists, is damaged.
        RevisionsUnmarked: the files are those of revisions, and no marker is required.
        PartitionPathInvalid, PartitionValueInvalid: a directory at a partition level does not match
            `partition_by`, and `on_bad_path` says `fail`.
    """
    root = str(config.path).rstrip("/")
    walk = _Walk(
        root=root,
        keys=config.partition_by,
        default_name=config.default_partition_name,
        skip_bad=config.on_bad_path == "skip",
        pattern=re.compile(config.path_regex) if config.path_regex else None,
        marker=config.require_marker.name if config.require_marker else None,
        until=until,
    )
    try:
        found = _FILES.get_file_info(root).type
        if found != fs.FileType.Directory:
            is_file = found == fs.FileType.File
            problem = "that is a file, no directory" if is_file else "no directory there"
            raise FolderNotFound(source=root, problem=problem)
        refuse_inside_of_table(root)
        walk.visit("", 0)
    except OSError as refused:
        raise SourceUnreachable(source=root, problem=str(refused)) from refused
    refuse_tables_below(root, walk.tables)
    return Listing(
        tuple(sorted(walk.files)),
        tuple(sorted(set(walk.skipped))),
        unmarked=frozenset(walk.unmarked),
    )
