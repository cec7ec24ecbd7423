"""List the partitions of a table and the slices in them."""

from __future__ import annotations

import functools
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.source.hudi.slices.file_groups import latest_slices, one_of
from tidegate.source.hudi.slices.names import BaseFile, parse_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.slices.names import LogFile
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, State

_METAFILE = ".hoodie_partition_metadata"
_THREADS = 16


def partitions(files: TableFiles) -> list[str]:
    """List the folders of a table that are partitions: those with Hudi's own file in them."""
    found: list[str] = []
    waiting = [""]
    with ThreadPoolExecutor(_THREADS) as pool:
        while waiting:
            listings = list(pool.map(files.folder, waiting))
            below: list[str] = []
            for place, entries in zip(waiting, listings, strict=True):
                if any(entry.name.startswith(_METAFILE) for entry in entries):
                    found.append(place)
                below += [
                    f"{place}/{entry.name}" if place else entry.name
                    for entry in entries
                    if entry.is_folder and entry.name != ".hoodie"
                ]
            waiting = below
    return sorted(found)


@dataclass(frozen=True)
class _Folder:
    files: Mapping[str, BaseFile | LogFile]
    """By name."""
    groups: Mapping[str, Sequence[BaseFile | LogFile]]
    """By file group."""


class FolderFiles:
    """The files in the folders of partitions, each folder listed once."""

    def __init__(self, files: TableFiles) -> None:
        self._files = files
        self._known: dict[str, _Folder] = {}

    def groups(self, partition: str) -> Mapping[str, Sequence[BaseFile | LogFile]]:
        """Return the base files and logs of a partition, by file group."""
        return self._folder(partition).groups

    def named(self, partition: str, name: str) -> BaseFile | LogFile | None:
        """Return a file of a partition by its name; None if it is not there."""
        return self._folder(partition).files.get(name)

    def of_group(self, partition: str, group: str) -> Sequence[BaseFile | LogFile]:
        """Return the files of a file group."""
        return self.groups(partition).get(group, ())

    def base_file(
        self, timeline: LoadedTimeline, partition: str, group: str, instant: str
    ) -> BaseFile | None:
        """Return the base file that an instant wrote for a file group; None if it is not there."""
        bases = (it for it in self.of_group(partition, group) if isinstance(it, BaseFile))
        found = [it for it in bases if it.instant == instant]
        return one_of(found, functools.partial(_is_named, timeline))

    def _folder(self, partition: str) -> _Folder:
        if partition not in self._known:
            files: dict[str, BaseFile | LogFile] = {}
            groups: defaultdict[str, list[BaseFile | LogFile]] = defaultdict(list)
            for entry in self._files.folder(partition):
                path = f"{partition}/{entry.name}" if partition else entry.name
                file = None if entry.is_folder else parse_name(path, entry.size_bytes)
                if file is not None:
                    files[file.name] = file
                    groups[file.group].append(file)
            self._known[partition] = _Folder(files, groups)
        return self._known[partition]

    def slices(
        self, timeline: LoadedTimeline, state: State, places: Iterable[str]
    ) -> Iterator[Slice]:
        """Yield the slices of partitions in one state of the table, without replaced groups.

        Folders are listed side by side.
        """
        replaced = state.replaced()
        wanted = sorted(places)
        named = functools.partial(_is_named, timeline)
        with ThreadPoolExecutor(_THREADS) as pool:
            for place, groups in zip(wanted, pool.map(self.groups, wanted), strict=True):
                found = latest_slices(place, groups, state, timeline.table.version, named)
                gone = replaced.get(place, frozenset())
                yield from (slice for slice in found if slice.group not in gone)


def _is_named(timeline: LoadedTimeline, base: BaseFile) -> bool:
    return any(stat.path == base.path for stat in timeline.metadata_of(base.instant).files)
