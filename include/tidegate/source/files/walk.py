"""List the files below a root, level by level (PC-R01, R03, R09, P05, P09)."""

from __future__ import annotations

import functools
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    MarkedFileWrong,
    PartitionPathInvalid,
    PartitionValueInvalid,
    RevisionsUnmarked,
    SourceReadTwice,
    SourceUnreachable,
)
from tidegate.model.marker import marked_files
from tidegate.model.partition import Partition
from tidegate.model.revision_folder import REVISIONS, revision_folders
from tidegate.source.files.disk_folder import DiskFolder
from tidegate.source.files.listing import ListedFile, Listing
from tidegate.source.files.looks import looked_at
from tidegate.source.files.partition_values import parse_values
from tidegate.source.files.store_folder import StoreFolder
from tidegate.source.files.tables import (
    PUBLISHED,
    kind_of_folder,
    refuse_inside_of_table,
    refuse_tables_below,
)
from tidegate.storage import is_object, nanoseconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import FilesSourceConfig
    from tidegate.errors import TidegateError
    from tidegate.model.marker import MarkedFile
    from tidegate.source.files.folder_view import FolderView, Seen
    from tidegate.storage import Storage


@dataclass
class _Walk:
    storage: Storage
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
    later: list[str] = field(default_factory=list)
    """Paths of files that markers list that do not count yet."""
    is_marked: bool = False
    """Whether a marker of Tidegate was found."""
    files: list[ListedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    """Folder → kind, or `PUBLISHED`, of tables with files that would be read."""

    @functools.cached_property
    def view(self) -> FolderView:
        """The folder as it is now."""
        seen: type[StoreFolder | DiskFolder] = StoreFolder if is_object(self.root) else DiskFolder
        return seen(self.storage, self.root, self._refuse)

    @functools.cached_property
    def ahead(self) -> dict[str, bytes | None]:
        """The markers of a folder in a store, which are read side by side; each is used once."""
        names = self.view.known(self.marker) if self.marker else []
        paths = [f"{self.root}/{name}" for name in names]
        return dict(zip(paths, looked_at(self.root, paths, self._read), strict=True))

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
        is_complete, listed, entries = self._marked(folder, is_complete=is_complete)
        if table is None:
            kind = self._kind({entry.name for entry in entries}, folder, place)
            table = (place, kind) if kind else None
        if any(entry.name == REVISIONS and entry.is_directory for entry in entries):
            self._visit_revisions(folder, depth, table)
        for entry in entries:
            if entry.name.startswith(("_", ".")):
                continue
            path = f"{folder}/{entry.name}".lstrip("/")
            if entry.is_link and self._leads_back(path):
                continue
            if entry.is_directory:
                if not self.keys or self._is_good(path, depth + 1):
                    self.visit(path, depth + 1, table, is_complete=is_complete)
            elif listed is None and not is_complete:
                self.unmarked.append(folder)
            elif (listed is None or entry.name in listed) and self._is_wanted(entry, path, depth):
                self.files.append(_listed(path, entry, listed))
                self.tables.update([table] if table else ())

    def _kind(self, found: Collection[str], folder: str, place: str) -> str | None:
        """Return the kind of table that a folder is a part of; None for files of the source."""
        kind = kind_of_folder(found, place, self.view)
        if kind is None and self.marker is not None and folder and OWNER_FILE in found:
            return PUBLISHED
        return kind

    def _visit_revisions(self, folder: str, depth: int, table: tuple[str, str] | None) -> None:
        """List the files of the newest revision that has a directory to itself, and a marker.

        Raises:
            RevisionsUnmarked: no marker is required, which alone tells the directory that counts.
        """
        homes = revision_folders(self.view, f"{self.root}/{folder}".rstrip("/"))
        if homes and self.marker is None:
            raise RevisionsUnmarked(source=self.root, folder=posixpath.dirname(homes[0]))
        for home in homes:
            inside = home.removeprefix(self.root).lstrip("/")
            _, listed, entries = self._marked(inside, is_complete=False)
            if listed is None:
                self.later += (f"{folder}/{name}".lstrip("/") for name in self._listed_later(home))
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}".lstrip("/")
                if entry.name in listed and self._is_wanted(entry, path, depth):
                    self.files.append(_listed(path, entry, listed))
                    self.tables.update([table] if table else ())
            return
        if homes:
            self.unmarked.append(folder)

    def _listed_later(self, home: str) -> Iterable[str]:
        """Return the files of a revision whose marker stands, but does not count yet."""
        if self.until is None:
            return ()
        marker = f"{home}/{self.marker}"
        content = self._read(marker, at_any_time=True)
        return () if content is None else marked_files(marker, content) or ()

    def _marked(
        self, folder: str, *, is_complete: bool
    ) -> tuple[bool, Mapping[str, MarkedFile] | None, list[Seen]]:
        """Return whether all files of a directory and below count, else which of its own do.

        A commit retracts the marker before it changes anything, and writes it last. So the marker
        is read before the directory, as far as a store does not list everything at once.

        Returns:
            The third is what the directory has.

        Raises:
            MarkerInvalid: it is a damaged one of Tidegate.
            MarkedFileWrong: a file is not as the standing marker lists it.
        """
        if self.marker is None:
            return True, None, self.view.entries(folder)
        marker = f"{self.root}/{folder}".rstrip("/") + f"/{self.marker}"
        content = self._standing(marker)
        entries = self.view.entries(folder)
        if content is None:
            return is_complete, None, entries
        listed = marked_files(marker, content)
        if listed is None:
            return True, None, entries
        self.is_marked = True
        if _wrong(listed, entries):
            # A commit may have come between the marker and what was listed.
            self.view.look_again(folder)
            if self._standing(marker) != content:
                return False, None, entries
            entries = self.view.entries(folder)
        for name, found in _wrong(listed, entries).items():
            raise MarkedFileWrong(
                path=f"{posixpath.dirname(marker)}/{name}",
                marker=marker,
                expected=f"{listed[name].length} bytes",
                found="no file" if found is None else f"{found} bytes",
            )
        return False, listed, entries

    def _standing(self, marker: str) -> bytes | None:
        """Return a marker; None if there is none, or none before the time that is looked at."""
        return self.ahead.pop(marker) if marker in self.ahead else self._read(marker)

    def _read(self, marker: str, *, at_any_time: bool = False) -> bytes | None:
        if not self.view.exists(marker):
            return None
        try:
            file, found = self.storage.open_with_details(marker)
        except FileNotFoundError:
            return None
        with file:
            is_late = self.until is not None and found.modified >= nanoseconds(self.until)
            if is_late and not at_any_time:
                return None
            return bytes(file.read())

    def _leads_back(self, path: str) -> bool:
        """Return whether a link leads to what is read already; others are followed."""
        place = self.view.known_place(path)
        if place is not None:
            self._refuse(path, SourceReadTwice(source=self.root, path=path, place=place))
        return place is not None

    def _is_wanted(self, entry: Seen, path: str, depth: int) -> bool:
        if not entry.is_file or entry.size == 0:
            return False
        if self.pattern and not self.pattern.fullmatch(f"{self.root}/{path}"):
            return False
        if depth == len(self.keys) or not self.keys:
            return True
        self._refuse_path(path.rpartition("/")[0])
        return False

    def _is_good(self, path: str, depth: int) -> bool:
        """Check a directory at a partition level (PC-R03)."""
        if depth > len(self.keys):
            self._refuse_path(path)
            return False
        try:
            partition = Partition.parse(path, tuple(self.keys)[:depth], self.default_name)
            parse_values(partition, self.keys, self.default_name, path)
        except (PartitionPathInvalid, PartitionValueInvalid) as invalid:
            self._refuse(path, invalid)
            return False
        return True

    def _refuse_path(self, path: str) -> None:
        expected = "/".join(f"{key}=…" for key in self.keys)
        self._refuse(path, PartitionPathInvalid(path=path or self.root, expected=expected))

    def _refuse(self, path: str, error: TidegateError) -> None:
        if not self.skip_bad:
            raise error
        self.skipped.append(path)


def _listed(path: str, entry: Seen, listed: Mapping[str, MarkedFile] | None) -> ListedFile:
    made_of = listed[entry.name].made_of if listed is not None else None
    return ListedFile(path, entry.size, entry.modified, tag=entry.tag, made_of=made_of)


def _wrong(listed: Mapping[str, MarkedFile], entries: Sequence[Seen]) -> dict[str, int | None]:
    """Return the files that are not as a marker lists them, with the sizes that they have."""
    sizes = {entry.name: entry.size for entry in entries if entry.is_file}
    return {
        name: sizes.get(name) for name, file in listed.items() if sizes.get(name) != file.length
    }


def list_directory(
    config: FilesSourceConfig, storage: Storage, until: datetime | None = None
) -> Listing:
    """List the source's files, sorted by path.

    Args:
        config: the pipeline's `source`.
        storage: of the files.
        until: markers that were written at this time or later do not count yet.

    Raises:
        FolderNotFound: the root is not a directory.
        FolderOfTable: it is in a table, or files that would be read are.
        PublishedTablesBelow: with a marker required, they are those of tables below it.
        SourceUnreachable: a directory cannot be listed, a name in it cannot be read, or a link
            leads to nothing; nothing is left out silently (PC-R01).
        SourceReadTwice: a link leads to a place that is already read, and `on_bad_path` says
            `fail`.
        MarkerInvalid, MarkedFileWrong: a marker, or a file that it lists, is damaged.
        RevisionsUnmarked: the files are those of revisions, and no marker is required.
        PartitionPathInvalid, PartitionValueInvalid: a directory at a partition level does not match
            `partition_by`, and `on_bad_path` says `fail`.
        StoreSilent, StoreDenied, CredentialsMissing, CredentialsExpired, BucketMissing: a store
            does not list it.
    """
    root = str(config.path).rstrip("/")
    walk = _Walk(
        storage=storage,
        root=root,
        keys=config.partition_by,
        default_name=config.default_partition_name,
        skip_bad=config.on_bad_path == "skip",
        pattern=re.compile(config.path_regex) if config.path_regex else None,
        marker=config.require_marker.name if config.require_marker else None,
        until=until,
    )
    try:
        walk.view.check()
        refuse_inside_of_table(root, storage.real_path(root), walk.view)
        walk.visit("", 0)
    except OSError as refused:
        raise SourceUnreachable(source=root, problem=str(refused)) from refused
    refuse_tables_below(root, walk.tables)
    return Listing(
        tuple(sorted(walk.files)),
        tuple(sorted(set(walk.skipped))),
        unmarked=frozenset(walk.unmarked),
        later=frozenset(walk.later),
        is_marked=walk.is_marked,
    )
