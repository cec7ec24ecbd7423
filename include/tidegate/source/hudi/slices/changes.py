"""The files that the writes of a window wrote, write by write (HUDI-R7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HudiChangesLost
from tidegate.source.hudi.slices.listing import FolderFiles, slices_of
from tidegate.source.hudi.slices.names import BaseFile, LogFile
from tidegate.source.hudi.timeline.loaded import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        self._files = files
        self._timeline = timeline
        self._window = window
        self._folders = FolderFiles(files)

    def __iter__(self) -> Iterator[Written | Removed]:
        for ordinal, (completed, requested) in enumerate(self._window):
            metadata = self._timeline.metadata_of(requested)
            for partition, stats in sorted(metadata.written.items()):
                for stat in stats:
                    if stat.path:
                        yield self._written(ordinal, requested, partition, stat)
            if metadata.replaced:
                # Everything that was done before this write.
                state = State(self._timeline, (completed, ""))
                yield from self._removed(ordinal, requested, state)

    def _written(self, ordinal: int, requested: str, partition: str, stat: WriteStat) -> Written:
        file = next((it for it in self._folders.of(partition) if it.path == stat.path), None)
        if file is None:
            raise self._lost(requested)
        previous = None
        if isinstance(file, BaseFile) and stat.deletes and stat.previous != _NONE:
            previous = self._base_file(partition, stat.file_id, stat.previous)
        return Written(ordinal, requested, partition, file, previous)

    def _removed(self, ordinal: int, requested: str, state: State) -> Iterator[Removed]:
        replaced = self._timeline.metadata_of(requested).replaced
        retained = self._timeline.retained_since()
        if retained is not None and requested < retained:
            raise self._lost(requested)
        for slice in slices_of(self._files, self._timeline, state, replaced):
            if slice.group in replaced[slice.partition]:
                yield Removed(ordinal, requested, slice, state)

    def _base_file(self, partition: str, group: str, instant: str) -> BaseFile:
        found = [
            it
            for it in self._folders.of(partition)
            if isinstance(it, BaseFile) and (it.group, it.instant) == (group, instant)
        ]
        named = {stat.path for stat in self._timeline.metadata_of(instant).files}
        kept = [it for it in found if it.path in named] or found
        if not kept:
            raise self._lost(instant)
        return max(kept, key=lambda it: it.token)

    def _lost(self, instant: str) -> HudiChangesLost:
        retained = self._timeline.retained_since() or "a later time"
        return HudiChangesLost(
            source=self._timeline.table.source, instant=instant, retained=retained
        )
