"""What a window deleted otherwise than by log records of slices that are there at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HudiChangesLost
from tidegate.source.hudi.slices.listing import FolderFiles
from tidegate.source.hudi.slices.named_files import NamedFiles
from tidegate.source.hudi.slices.names import BaseFile, parse_name
from tidegate.source.hudi.slices.window_slices import clusterings
from tidegate.source.hudi.timeline.kept import is_kept
from tidegate.source.hudi.timeline.loaded import State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order

    Group = tuple[str, str]

_NONE = "null"


@dataclass(frozen=True)
class Rewritten:
    """A file group from whose base file a window deleted rows (HUDI-R6)."""

    previous: BaseFile
    """The base file that stood before the window's first write to it."""
    by: str
    """The first write that deleted rows: a key that came back elsewhere was written after it."""


@dataclass(frozen=True)
class Ended:
    """A slice that is not there at the end of the window."""

    slice: Slice
    state: State
    """In which it is read."""
    removed_by: str | None
    """The write that removed it with its rows; None: its rows were clustered into others."""


class WindowDeletes:
    """Finds what the writes of one window deleted.

    Args:
        files: of the table.
        timeline: one listing.
        window: its writes, in the order of completion.
        start: the instant before it.
        until: the last visible instant of its end.
    """

    def __init__(
        self,
        files: TableFiles,
        timeline: LoadedTimeline,
        window: Sequence[Order],
        start: Order,
        until: Order,
    ) -> None:
        self._folders = FolderFiles(files)
        self._timeline = timeline
        self._window = window
        self._start = start
        self._until = until

    def rewritten(self) -> Mapping[Group, Rewritten]:
        """Return file groups of which base files were written anew without rows of before.

        Raises:
            HudiChangesLost: the base file of before is not there any more.
        """
        first: dict[Group, str] = {}
        deleting: dict[Group, str] = {}
        for _, requested in self._window:
            for partition, stats in self._timeline.metadata_of(requested).written.items():
                for stat in stats:
                    if isinstance(parse_name(stat.path, 0), BaseFile):
                        group = partition, stat.file_id
                        first.setdefault(group, stat.previous)
                        if stat.deletes:
                            deleting.setdefault(group, requested)
        wanted = {group: first[group] for group in deleting if first[group] != _NONE}
        found = self._base_files(wanted)
        return {group: Rewritten(found[group], deleting[group]) for group in wanted}

    def ended(self, standing: Collection[Group]) -> Iterator[Ended]:
        """Yield the slices that the window changed or removed and that are not there at its end.

        Args:
            standing: the file groups at the end.

        Raises:
            HudiChangesLost: files of the state before the window may be gone.
        """
        removed = self._removed()
        if removed:
            if not is_kept(self._timeline, self._start):
                raise self._lost(self._start[1])
            state = State(self._timeline, self._start)
            self._check_named(state, removed)
            for slice in self._folders.slices(self._timeline, state, removed):
                by = removed[slice.partition].get(slice.group)
                if by is not None:
                    yield Ended(slice, state, by)
        for order, places in sorted(self._moved(removed, standing).items()):
            state = State(self._timeline, order)
            for slice in self._folders.slices(self._timeline, state, places):
                if slice.group in places[slice.partition]:
                    yield Ended(slice, state, None)

    def _moved(
        self, removed: Mapping[str, Mapping[str, str]], standing: Collection[Group]
    ) -> Mapping[Order, Mapping[str, set[str]]]:
        """Return groups that were clustered into others, by their last write and partition."""
        last: dict[Group, Order] = {}
        for order in self._window:
            for partition, stats in self._timeline.metadata_of(order[1]).written.items():
                last.update(dict.fromkeys(((partition, stat.file_id) for stat in stats), order))
        found: dict[Order, dict[str, set[str]]] = {}
        for (partition, group), order in last.items():
            if (partition, group) in standing or group in removed.get(partition, {}):
                continue
            found.setdefault(order, {}).setdefault(partition, set()).add(group)
        return found

    def _removed(self) -> dict[str, dict[str, str]]:
        """Return partition → file group → the write that removed it with its rows.

        Groups whose rows were clustered into such a group within the window are removed with it.
        """
        found: dict[str, dict[str, str]] = {}
        for _, requested in self._window:
            for partition, groups in self._timeline.metadata_of(requested).replaced.items():
                found.setdefault(partition, {}).update(dict.fromkeys(groups, requested))
        for metadata in reversed(list(clusterings(self._timeline, self._window, self._until))):
            for partition, replaced in metadata.replaced.items():
                removed = found.get(partition, {})
                stats = metadata.written.get(partition, ())
                by = [removed[stat.file_id] for stat in stats if stat.file_id in removed]
                if by:
                    removed.update(dict.fromkeys(replaced, max(by)))
        return found

    def _base_files(self, wanted: Mapping[Group, str]) -> dict[Group, BaseFile]:
        found: dict[Group, BaseFile] = {}
        for partition in sorted({partition for partition, _ in wanted}):
            for file in self._folders.of(partition):
                if not isinstance(file, BaseFile):
                    continue
                group = partition, file.group
                if wanted.get(group) == file.instant and self._is_named(file):
                    found[group] = file
        gone = sorted(wanted.keys() - found.keys())
        if gone:
            raise self._lost(wanted[gone[0]])
        return found

    def _check_named(self, state: State, places: Mapping[str, Collection[str]]) -> None:
        """Refuse a state that lacks files of some groups: their keys would not be told (HUDI-F14).

        Raises:
            HudiChangesLost: a file that a write names is not there.
        """
        groups = {(place, group) for place, found in places.items() for group in found}
        lost = NamedFiles(self._timeline, state).lost(self._folders, groups)
        if lost is not None:
            raise self._lost(lost)

    def _lost(self, instant: str) -> HudiChangesLost:
        return HudiChangesLost(source=self._timeline.table.source, instant=instant)

    def _is_named(self, file: BaseFile) -> bool:
        """Return whether the commit names the file, and not another one of a failed task."""
        stats = self._timeline.metadata_of(file.instant).files
        return not stats or any(stat.path == file.path for stat in stats)
