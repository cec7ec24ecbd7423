"""The files that done writes name and that nothing took the place of: they have to be there.

Opens no file of data; what writes did is read from the active timeline (HUDI-F14).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from tidegate.errors import HudiFileLost, HudiFilesCleaned, HudiTimelineMoved
from tidegate.source.hudi.slices.file_groups import LOGS_BY_COMPLETION, is_part
from tidegate.source.hudi.slices.names import BaseFile, LogFile, parse_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Set

    from tidegate.source.hudi.slices.listing import FolderFiles
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order, State

    Group = tuple[str, str]

_BEGINNING = ("", "")


@dataclass(frozen=True)
class ShortLog:
    """A log that has fewer bytes than a write left in it: what is missing is not read."""

    path: str
    """Below the table."""
    instant: str
    size_bytes: int
    expected_bytes: int

    @property
    def note(self) -> str:
        """The same in words."""
        return (
            f"{self.path}: the log has {self.size_bytes} bytes, and the write of {self.instant} "
            f"left {self.expected_bytes} in it. What is missing is not read, as by Hudi; restore "
            "the file to have its rows"
        )


def short_log(log: LogFile, instant: str, expected_bytes: int) -> ShortLog | None:
    """Return a log that a write left longer; None if it has its length."""
    if log.size_bytes >= expected_bytes:
        return None
    return ShortLog(log.path, instant, log.size_bytes, expected_bytes)


@dataclass(frozen=True)
class _Named:
    """A file that a done write or service names."""

    partition: str
    instant: str
    """The requested time of the write."""
    file: BaseFile | LogFile
    """With the length that the write told; 0 if it told none."""
    compacts_logs: bool
    """Whether it is what a log compaction wrote, in place of logs before it."""


class NamedFiles:
    """What the active timeline names in the groups of one state.

    Args:
        timeline: one listing.
        state: what is read.
        after: writes up to this one are not looked at; None: all active ones are.
    """

    def __init__(self, timeline: LoadedTimeline, state: State, after: Order | None = None) -> None:
        self._timeline = timeline
        self._state = state
        self._named: defaultdict[Group, list[_Named]] = defaultdict(list)
        for named in _named(timeline, state, after or _BEGINNING):
            self._named[named.partition, named.file.group].append(named)

    @property
    def partitions(self) -> frozenset[str]:
        """The partitions that have a named file in a group which was not replaced."""
        return frozenset(partition for partition, _ in self._named)

    def groups(self, places: Collection[str]) -> frozenset[Group]:
        """The groups in some partitions that have a named file, and were not replaced."""
        return frozenset(group for group in self._named if group[0] in places)

    def check(
        self, folders: FolderFiles, later: LoadedTimeline, groups: Set[Group]
    ) -> tuple[ShortLog, ...]:
        """Refuse a state that lacks a file; return the logs that are shorter than they were.

        Args:
            folders: lists those of partitions.
            later: the timeline, listed after the folders.
            groups: only files of these are looked at.

        Raises:
            HudiFileLost: a file is not there.
            HudiFilesCleaned: so it is in an earlier state, of which a clean may have removed it.
            HudiTimelineMoved: its write was rolled back meanwhile (Transient).
        """
        short: dict[str, ShortLog] = {}
        for named, found in self._standing(folders, groups):
            if found is None:
                self._refuse(named, later)
            elif isinstance(found, LogFile):
                log = short_log(found, named.instant, named.file.size_bytes)
                if log is not None:
                    short[log.path] = log
        return tuple(short.values())

    def lost(self, folders: FolderFiles, places: Mapping[str, Collection[str]]) -> str | None:
        """Return a write of which a file is not there, by its requested time; None for none.

        Args:
            folders: lists those of partitions.
            places: partition → file groups of which files are looked at.
        """
        groups = {(place, group) for place, found in places.items() for group in found}
        standing = self._standing(folders, groups)
        return next((named.instant for named, found in standing if found is None), None)

    def _standing(
        self, folders: FolderFiles, groups: Set[Group]
    ) -> Iterator[tuple[_Named, BaseFile | LogFile | None]]:
        """Yield the named files of the slices that are read, as they were listed; None: gone."""
        for place, group in sorted(self._named.keys() & groups):
            named = self._named[place, group]
            files = folders.of_group(place, group)
            listed = {it.name: it for it in files}
            newest = self._newest((*files, *(it.file for it in named)))
            compactions = (it for it in named if it.compacts_logs and it.file.name in listed)
            compacted = max((it.instant for it in compactions), default="")
            for it in named:
                found = listed.get(it.file.name)
                if found is None and self._is_dispensable(it, compacted):
                    continue
                if self._stands(it.file, newest):
                    yield it, found

    def _newest(self, files: Iterable[BaseFile | LogFile]) -> BaseFile | None:
        bases = [
            it for it in files if isinstance(it, BaseFile) and self._state.is_visible(it.instant)
        ]
        return max(bases, key=lambda it: it.instant, default=None)

    def _stands(self, file: BaseFile | LogFile, newest: BaseFile | None) -> bool:
        """Return whether a file is part of the slice that is read."""
        if isinstance(file, BaseFile):
            return newest is not None and file.instant == newest.instant
        version = self._timeline.table.version
        if version < LOGS_BY_COMPLETION and not self._state.is_known(file.instant):
            return False
        return file.kind != "cdc" and is_part(file, newest, self._state, version)

    def _is_dispensable(self, lost: _Named, compacted: str) -> bool:
        """Return whether what a file that is gone had is in a log compaction, or was replaced.

        Args:
            lost: the file.
            compacted: the requested time of the last log compaction, which has the records of logs
                before it.
        """
        if isinstance(lost.file, LogFile) and self._state.completed(lost.instant) <= compacted:
            return True
        archived = self._timeline.archived.values()
        place, group = lost.partition, lost.file.group
        return any(group in it.metadata.replaced.get(place, ()) for it in archived)

    def _refuse(self, lost: _Named, later: LoadedTimeline) -> NoReturn:
        table, writes = self._timeline.table, self._timeline.active.writes
        if lost.instant not in later.active.writes:
            file = writes[lost.instant].file
            raise HudiTimelineMoved(path=f"{table.source}/{table.timeline_folder}/{file}")
        if any(it.order > self._state.until for it in writes.values()):
            cleaned = f"{lost.file.path}, which the write of {lost.instant} names, is gone"
            until = self._state.until[1]
            raise HudiFilesCleaned(source=table.source, instant=until, cleaned=cleaned)
        raise HudiFileLost(path=f"{table.source}/{lost.file.path}", instant=lost.instant)


def _named(timeline: LoadedTimeline, state: State, after: Order) -> Iterator[_Named]:
    actions = [
        it
        for it in timeline.active.done
        if after < it.order <= state.until and timeline.active.writes.get(it.requested) == it
    ]
    timeline.look_ahead(actions)
    replaced = state.replaced()
    for action in actions:
        metadata = timeline.metadata(action)
        for partition, stats in metadata.written.items():
            gone = replaced.get(partition, frozenset())
            for stat in stats:
                file = parse_name(stat.path, stat.end_bytes)
                if file is not None and file.group not in gone:
                    yield _Named(partition, action.requested, file, metadata.compacts_logs)
