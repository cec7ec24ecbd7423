"""List the partitions of a table and the slices in them."""

from __future__ import annotations

import functools
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidegate.source.hudi.slices.file_groups import latest_slices, one_of
from tidegate.source.hudi.slices.names import BaseFile, parse_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


class FolderFiles:
    """The files in the folders of partitions, each folder listed once."""

    def __init__(self, files: TableFiles) -> None:
        self._files = files
        self._known: dict[str, list[BaseFile | LogFile]] = {}
        self._bases: dict[str, dict[tuple[str, str], list[BaseFile]]] = {}

    def of(self, partition: str) -> Sequence[BaseFile | LogFile]:
        """Return the base files and logs of a partition."""
        if partition not in self._known:
            entries = self._files.folder(partition)
            named = (
                parse_name(f"{partition}/{it.name}" if partition else it.name, it.size_bytes)
                for it in entries
                if not it.is_folder
            )
            self._known[partition] = [file for file in named if file is not None]
        return self._known[partition]

    def base_file(
        self, timeline: LoadedTimeline, partition: str, group: str, instant: str
    ) -> BaseFile | None:
        """Return the base file that an instant wrote for a file group; None if it is not there."""
        if partition not in self._bases:
            bases = self._bases[partition] = defaultdict(list)
            for file in self.of(partition):
                if isinstance(file, BaseFile):
                    bases[file.group, file.instant].append(file)
        found = self._bases[partition].get((group, instant), ())
        return one_of(found, functools.partial(_is_named, timeline))

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
            for place, files in zip(wanted, pool.map(self.of, wanted), strict=True):
                found = latest_slices(place, files, state, timeline.table.version, named)
                gone = replaced.get(place, frozenset())
                yield from (slice for slice in found if slice.group not in gone)


def _is_named(timeline: LoadedTimeline, base: BaseFile) -> bool:
    return any(stat.path == base.path for stat in timeline.metadata_of(base.instant).files)
