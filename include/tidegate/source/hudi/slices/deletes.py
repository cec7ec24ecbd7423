"""What a window deleted otherwise than by log records of slices that are there at its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.errors import HudiChangesLost
from tidegate.source.hudi.slices.named_files import NamedFiles
from tidegate.source.hudi.slices.names import BaseFile, LogFile, parse_name
from tidegate.source.hudi.slices.split_buckets import written_once
from tidegate.source.hudi.slices.window_slices import clusterings, is_needed_log
from tidegate.source.hudi.timeline.kept import is_kept
from tidegate.source.hudi.timeline.loaded import State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.slices.listing import FolderFiles
    from tidegate.source.hudi.slices.split_buckets import WrittenOnce
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order
    from tidegate.source.hudi.timeline.metadata import WriteStat

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
        folders: lists those of partitions.
        timeline: one listing.
        window: its writes, in the order of completion.
        start: the instant before it.
        until: the last visible instant of its end.
    """

    def __init__(
        self,
        folders: FolderFiles,
        timeline: LoadedTimeline,
        window: Sequence[Order],
        start: Order,
        until: Order,
    ) -> None:
        self._folders = folders
        self._timeline = timeline
        self._window = window
        self._start = start
        self._until = until
        self._end = State(timeline, until)

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
            HudiChangesLost: files that tell deletes are gone, or may be.
        """
        removed = self._removed()
        self._check_logs(removed)
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
            state = State(self._timeline, order, places)
            self._check_named(state, places)
            slices = list(self._folders.slices(self._timeline, state, places))
            found = [it for it in slices if it.group in places[it.partition]]
            if len(found) < sum(map(len, places.values())):
                raise self._lost(order[1])
            yield from (Ended(slice, state, None) for slice in found)

    def _moved(
        self, removed: Mapping[str, Mapping[str, str]], standing: Collection[Group]
    ) -> Mapping[Order, Mapping[str, set[str]]]:
        """Return groups with deletes that were clustered into others.

        They are returned by their last write, after which they are read, and partition.
        """
        last: dict[Group, Order] = {}
        telling: set[Group] = set()
        for order, partition, written, told in self._written:
            last |= {(partition, stat.file_id): order for stat in written}
            telling |= {
                (partition, stat.file_id)
                for stat in written
                if _may_tell(stat) and stat.file_id not in told
            }
        found: dict[Order, dict[str, set[str]]] = {}
        for partition, group in telling.difference(standing):
            if group not in removed.get(partition, {}):
                places = found.setdefault(last[partition, group], {})
                places.setdefault(partition, set()).add(group)
        return found

    def _check_logs(self, removed: Mapping[str, Mapping[str, str]]) -> None:
        """Refuse a window that lacks a log which may have deletes, wherever its rows are by now.

        The keys of groups that were removed are told by what stood in them before.

        Raises:
            HudiChangesLost: a log is not there.
        """
        for (_, requested), partition, written, told in self._written:
            elsewhere = told.union(removed.get(partition, ()))
            needed = [stat for stat in written if stat.file_id not in elsewhere]
            if not self._has_logs(partition, needed):
                raise self._lost(requested)

    @cached_property
    def _written(self) -> Sequence[tuple[Order, str, Sequence[WriteStat], frozenset[str]]]:
        """Each write's files in one partition, and the groups whose deletes others tell again."""
        return [
            (order, partition, written.files, self._told_again(partition, written))
            for order in self._window
            for partition, written in written_once(self._timeline, order[1]).items()
        ]

    def _told_again(self, partition: str, written: WrittenOnce) -> frozenset[str]:
        """Return groups whose deletes the logs tell that were written again into others."""
        is_told = written.again and self._has_logs(partition, written.again)
        return written.split if is_told else frozenset()

    def _has_logs(self, partition: str, stats: Iterable[WriteStat]) -> bool:
        """Return whether the logs among files that may tell deletes are there."""
        logs = {
            stat.name for stat in stats if _may_tell(stat) and is_needed_log(self._end, stat.path)
        }
        return all(self._folders.named(partition, name) is not None for name in logs)

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
        for (partition, group), instant in sorted(wanted.items()):
            file = self._folders.base_file(self._timeline, partition, group, instant)
            if file is None:
                raise self._lost(instant)
            found[partition, group] = file
        return found

    def _check_named(self, state: State, places: Mapping[str, Collection[str]]) -> None:
        """Refuse a state that lacks files of some groups: their keys would not be told (HUDI-F14).

        Raises:
            HudiChangesLost: a file that a write names is not there.
        """
        lost = NamedFiles(self._timeline, state).lost(self._folders, places)
        if lost is not None:
            raise self._lost(lost)

    def _lost(self, instant: str) -> HudiChangesLost:
        return HudiChangesLost(source=self._timeline.table.source, instant=instant)


def _may_tell(stat: WriteStat) -> bool:
    """Return whether a file that a write wrote may tell deletes."""
    is_log = isinstance(parse_name(stat.path, 0), LogFile)
    return stat.may_delete if is_log else stat.deletes > 0
