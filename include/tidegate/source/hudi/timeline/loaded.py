"""One look at a table's timeline: its active actions, what they did, and the archive if needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import (
    HudiInstantUnfinished,
    HudiTableDowngraded,
    HudiTimelineMoved,
    SourceFileGone,
    TimelineFileDamaged,
)
from tidegate.source.hudi.timeline.actions import ActiveTimeline
from tidegate.source.hudi.timeline.archive import read_archive, read_archived_orders
from tidegate.source.hudi.timeline.metadata import (
    NOTHING,
    Role,
    earliest_retained,
    parse_metadata,
    taken_back,
)
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from tidegate.model.instant import Instant
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.table.properties import TableProperties
    from tidegate.source.hudi.timeline.actions import Action
    from tidegate.source.hudi.timeline.archive import ArchivedInstant
    from tidegate.source.hudi.timeline.metadata import CommitMetadata

_THREADS = 16
_Told = TypeVar("_Told")
Order = tuple[str, str]
"""Completion and requested time, by which instants are ordered (HUDI-W2)."""


class LoadedTimeline:
    """The timeline as one listing showed it (HUDI-T14)."""

    def __init__(self, files: TableFiles, table: TableProperties) -> None:
        """List the active timeline.

        Args:
            files: of the table.
            table: its properties.
        """
        self._files = files
        self.table = table
        names = (entry.name for entry in files.folder(table.timeline_folder))
        self.active = ActiveTimeline.parse(names, table.layout)
        self._metadata: dict[str, CommitMetadata] = {}

    def order(self, instant: Instant) -> Order:
        """Return completion and requested time of an instant, as this timeline has them.

        An instant that was seen before the table was upgraded has no completion time of its own.

        Raises:
            HudiTableDowngraded: the instant has one, and this timeline has none (HUDI-W2).
        """
        completed, requested = order_of(instant)
        if self.table.layout == 1 and completed != requested:
            raise HudiTableDowngraded(
                source=self.table.source, instant=requested, version=self.table.version
            )
        if self.table.layout == 1 or completed != requested:
            return completed, requested
        action = self.active.writes.get(requested)
        found = action or self.archived.get(requested)
        return found.order if found is not None else (completed, requested)

    @cached_property
    def archived(self) -> Mapping[str, ArchivedInstant]:
        """Requested time → archived write that is done (HUDI-T12); read when first asked for."""
        return {it.requested: it for it in read_archive(self._files, self.table)}

    def archived_after(self, state: Order) -> frozenset[str]:
        """Return the requested times of archived writes that were done after an instant.

        The archiver of layout 2 goes by requested times: a write that took long leaves the active
        timeline before one that was requested later and done before it.
        """
        if self.table.layout == 1:
            first = self.active.first
            if first is None or state[0] >= first:
                return frozenset()
            return frozenset(it.requested for it in self.archived.values() if it.order > state)
        return frozenset(
            requested for done, requested in self.archived_orders if (done, requested) > state
        )

    @cached_property
    def archived_orders(self) -> frozenset[Order]:
        """The archived writes of layout 2, of which only the times are read."""
        return read_archived_orders(self._files, self.table)

    @cached_property
    def has_archive(self) -> bool:
        """Whether instants have left the active timeline; lists a folder, and opens no file."""
        return bool(self._files.folder(self.table.history_folder))

    def content(self, name: str) -> bytes:
        """Read a file of the active timeline; empty if it is not there."""
        try:
            return self._files.read(f"{self.table.timeline_folder}/{name}")
        except SourceFileGone:
            return b""

    def metadata(self, action: Action) -> CommitMetadata:
        """Return what a done action did.

        Raises:
            HudiTimelineMoved: its file was archived after this listing (Transient).
            HudiInstantUnfinished: its file may be empty only for now (Transient).
            TimelineFileDamaged: its file cannot be read.
        """
        if action.file not in self._metadata:
            path = f"{self.table.timeline_folder}/{action.file}"
            try:
                content = self._files.read(path)
            except SourceFileGone as gone:
                raise HudiTimelineMoved(path=self._files.path(path)) from gone
            if not content.strip() and self._may_be_unfinished(action):
                raise HudiInstantUnfinished(path=self._files.path(path))
            try:
                self._metadata[action.file] = parse_metadata(content)
            except ValueError as damaged:
                raise TimelineFileDamaged(
                    path=self._files.path(path), problem=str(damaged)
                ) from damaged
        return self._metadata[action.file]

    def _may_be_unfinished(self, action: Action) -> bool:
        """Return whether the empty file of a done action may be about to get its content.

        Layout 2 has no empty files; of layout 1 the newest one is doubted (HUDI-T7).
        """
        newest = max(self.active.writes, default=None)
        return self.table.layout != 1 or action.requested == newest

    def look_ahead(self, actions: Iterable[Action]) -> None:
        """Read the files of several actions side by side."""
        unknown = [action for action in actions if action.file not in self._metadata]
        if len(unknown) > 1:
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(self.metadata, unknown))

    def retained_since(self) -> str | None:
        """Return the requested time whose state all cleans kept or keep; None if there are none.

        A clean that counts versions of files keeps the newest state only.
        """
        cleans = [it for it in self.active.actions if it.kind == "clean"]
        done = [it for it in cleans if it.is_done]
        pending = [it for it in cleans if not it.is_done]
        found = [self._told(earliest_retained, it.file) or it.requested for it in done[-1:]]
        # One at work may have deleted already what it planned.
        found += [
            self._told(earliest_retained, f"{it.requested}.clean.requested") or it.requested
            for it in pending
        ]
        return max(found, default=None)

    def _told(self, parse: Callable[[bytes], _Told], name: str) -> _Told:
        """Return what a file of the active timeline tells.

        Raises:
            TimelineFileDamaged: it cannot be read.
        """
        path = f"{self.table.timeline_folder}/{name}"
        try:
            return parse(self.content(name))
        except ValueError as damaged:
            raise TimelineFileDamaged(
                path=self._files.path(path), problem=str(damaged)
            ) from damaged

    def took_back(self, requested: str) -> bool:
        """Return whether a restore or a rollback of the active timeline took an instant back."""
        return any(
            requested in self._told(taken_back, it.file)
            for it in self.active.done
            if it.kind in {"restore", "rollback"}
        )

    def state_after(self, write: Order) -> State:
        """Return the state after a write, with the services that were done before the next one."""
        until = write
        for action in self.active.done:
            if action.order <= write or self.active.writes.get(action.requested) != action:
                continue
            if action.service is None and self.metadata(action).role is Role.WRITE:
                break
            until = action.order
        return State(self, until)

    def metadata_of(self, requested: str) -> CommitMetadata:
        """Return what an instant did, active or archived; nothing if that is not known any more."""
        action = self.active.writes.get(requested)
        if action is not None:
            return self.metadata(action)
        archived = self.archived.get(requested)
        return archived.metadata if archived is not None else NOTHING


class State:
    """The `View` of the state of a table after an instant.

    Services that were done before the next write belong to it: they change files, not rows.
    """

    def __init__(
        self,
        timeline: LoadedTimeline,
        until: Order,
        kept: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Prepare.

        Args:
            timeline: one listing.
            until: the last visible instant.
            kept: partition → file groups that were not replaced by then, although the timeline of
                layout 1 has their replacement before: it may have been done after later requests.
        """
        self._timeline = timeline
        self._kept = kept or {}
        self.until = until

    def is_visible(self, requested: str) -> bool:
        """Return whether the instant was done in that state (HUDI-F2, T11)."""
        active = self._timeline.active
        action = active.writes.get(requested)
        if action is not None:
            return action.order <= self.until
        return active.is_committed(requested) and self._archived_by(requested)

    def is_known(self, requested: str) -> bool:
        """Return whether the instant was done in that state, or is pending.

        A log of a version below 8 that is named by any other one, the plan of a compaction that was
        taken back, has got another name.
        """
        return requested in self._timeline.active.pending or self.is_visible(requested)

    def completed(self, requested: str) -> str:
        """Return when an instant was done; its requested time if that is no longer known."""
        action = self._timeline.active.writes.get(requested)
        if action is not None and action.completed is not None:
            return action.completed
        archived = self._timeline.archived.get(requested)
        return archived.completed if archived is not None else requested

    def replaced(self) -> Mapping[str, frozenset[str]]:
        """Return partition → file groups that were replaced by then (HUDI-F10)."""
        done = [
            action
            for action in self._timeline.active.done
            if action.kind == "replacecommit" and action.order <= self.until
        ]
        self._timeline.look_ahead(done)
        found: dict[str, set[str]] = {}
        for action in done:
            for partition, groups in self._timeline.metadata(action).replaced.items():
                found.setdefault(partition, set()).update(groups)
        return {
            partition: frozenset(groups.difference(self._kept.get(partition, ())))
            for partition, groups in found.items()
        }

    def _archived_by(self, requested: str) -> bool:
        """Return whether an archived instant was done by then."""
        if requested in self._archived_later:
            return False
        first = self._timeline.active.first
        # When one that the archive has lost was done is not known.
        return first is None or self.until[0] >= first or (requested, requested) <= self.until

    @cached_property
    def _archived_later(self) -> frozenset[str]:
        return self._timeline.archived_after(self.until)
