"""The files that the writes of a window wrote, write by write (HUDI-R7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HudiChangesLost
from tidegate.model.file_slice import DeltaKind
from tidegate.source.hudi.slices.listing import FolderFiles
from tidegate.source.hudi.slices.named_files import NamedFiles, ShortLog, short_log
from tidegate.source.hudi.slices.names import BaseFile, LogFile
from tidegate.source.hudi.slices.split_buckets import written_once
from tidegate.source.hudi.table.properties import LoggedImages
from tidegate.source.hudi.timeline.kept import is_kept
from tidegate.source.hudi.timeline.loaded import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order
    from tidegate.source.hudi.timeline.metadata import WriteStat

_NONE = "null"


@dataclass(frozen=True)
class Written:
    """A file that a write wrote, or added to."""

    ordinal: int
    """Number of the write in the window, from 0."""
    instant: str
    """Its requested time."""
    partition: str
    file: BaseFile | LogFile
    previous: BaseFile | None
    """The base file that it replaces, if rows were deleted."""
    only_inserts: bool = False
    """Whether all of its rows are known to be new."""
    short: tuple[ShortLog, ...] = ()
    """The file itself, if it is a log that the write left longer."""


@dataclass(frozen=True)
class Logged:
    """A base file whose changes the writer logged beside it."""

    ordinal: int
    instant: str
    partition: str
    logs: tuple[LogFile, ...]
    files: Mapping[DeltaKind, BaseFile]
    """Where rows are that the log has only keys of."""
    short: tuple[ShortLog, ...] = ()
    """Those of the logs that the write left longer."""


@dataclass(frozen=True)
class Removed:
    """A slice that a write removed with its rows, as it stood before."""

    ordinal: int
    instant: str
    slice: Slice
    state: State


class WindowChanges:
    """Finds the files of one window.

    Args:
        files: of the table.
        timeline: one listing.
        window: its writes, in the order of completion.

    Raises:
        HudiChangesLost: a file is not there any more.
    """

    def __init__(
        self, files: TableFiles, timeline: LoadedTimeline, window: Sequence[Order]
    ) -> None:
        self._timeline = timeline
        self._window = window
        self._folders = FolderFiles(files)

    def __iter__(self) -> Iterator[Written | Logged | Removed]:
        for ordinal, (completed, requested) in enumerate(self._window):
            metadata = self._timeline.metadata_of(requested)
            written = written_once(self._timeline, requested)
            for partition in sorted(written):
                for stat in written[partition].files:
                    if stat.changes:
                        yield self._logged(ordinal, requested, partition, stat)
                    elif stat.path:
                        yield self._written(ordinal, requested, partition, stat)
            if metadata.replaced:
                # Everything that was done before this write.
                state = State(self._timeline, (completed, ""))
                if not is_kept(self._timeline, (completed, requested)):
                    raise self._lost(requested)
                yield from self._removed(ordinal, requested, state)

    def _written(self, ordinal: int, requested: str, partition: str, stat: WriteStat) -> Written:
        file = self._file(partition, stat.path, requested)
        if not isinstance(file, BaseFile):
            short = short_log(file, requested, stat.end_bytes)
            return Written(
                ordinal, requested, partition, file, None, short=(short,) if short else ()
            )
        if stat.previous == _NONE:
            only_inserts = self._timeline.table.writes_changes
            return Written(ordinal, requested, partition, file, None, only_inserts)
        previous = None
        if stat.deletes:
            previous = self._base_file(partition, stat.file_id, stat.previous)
        return Written(ordinal, requested, partition, file, previous)

    def _logged(self, ordinal: int, requested: str, partition: str, stat: WriteStat) -> Logged:
        """Find the log of a write, and the files with rows that it has no values of (HUDI-O11)."""
        logs, short = [], []
        for path, size in stat.changes:
            log = self._file(partition, _below(partition, path), requested)
            if isinstance(log, LogFile):
                logs.append(log)
                short.append(short_log(log, requested, size))
        files: dict[DeltaKind, BaseFile] = {}
        logged = self._timeline.table.logged_images
        if logged != LoggedImages.BEFORE_AND_AFTER:
            written = self._file(partition, stat.path, requested)
            assert isinstance(written, BaseFile)
            files[DeltaKind.WRITTEN] = written
        if logged == LoggedImages.NONE:
            before = self._base_file(partition, stat.file_id, stat.previous)
            files[DeltaKind.PREVIOUS] = before
        lacking = tuple(it for it in short if it is not None)
        return Logged(ordinal, requested, partition, tuple(logs), files, lacking)

    def _file(self, partition: str, path: str, requested: str) -> BaseFile | LogFile:
        """Find a file that a write names.

        Raises:
            HudiChangesLost: it is not there any more.
        """
        file = self._folders.named(partition, path.rpartition("/")[2])
        if file is None or file.path != path:
            raise self._lost(requested)
        return file

    def _removed(self, ordinal: int, requested: str, state: State) -> Iterator[Removed]:
        replaced = self._timeline.metadata_of(requested).replaced
        lost = NamedFiles(self._timeline, state).lost(self._folders, replaced)
        if lost is not None:
            # The keys in its rows would not be told.
            raise self._lost(lost)
        for slice in self._folders.slices(self._timeline, state, replaced):
            if slice.group in replaced[slice.partition]:
                yield Removed(ordinal, requested, slice, state)

    def _base_file(self, partition: str, group: str, instant: str) -> BaseFile:
        found = self._folders.base_file(self._timeline, partition, group, instant)
        if found is None:
            raise self._lost(instant)
        return found

    def _lost(self, instant: str) -> HudiChangesLost:
        return HudiChangesLost(source=self._timeline.table.source, instant=instant)


def _below(partition: str, path: str) -> str:
    """Return the path below the table of a log of changes, which may be named without a folder."""
    name = path.rpartition("/")[2]
    return f"{partition}/{name}" if partition else name
