"""The file slices of a Hudi table's windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.errors import HudiFilesCleaned
from tidegate.model.file_slice import DeltaKind
from tidegate.model.plan_record import InstantAction, Listed
from tidegate.source.hudi.pieces import PieceMaker, SliceRead
from tidegate.source.hudi.slices.changes import Logged, Removed, WindowChanges, Written
from tidegate.source.hudi.slices.deletes import WindowDeletes
from tidegate.source.hudi.slices.details import (
    CHANGELOG,
    ONLY_WINDOW,
    REPLACING,
    WITH_DELETES,
    SliceDetails,
    details_of,
)
from tidegate.source.hudi.slices.events import partition_events
from tidegate.source.hudi.slices.file_groups import Slice
from tidegate.source.hudi.slices.listing import FolderFiles, partitions
from tidegate.source.hudi.slices.named_files import NamedFiles, ShortLog
from tidegate.source.hudi.slices.names import BaseFile
from tidegate.source.hudi.slices.window_slices import (
    check_groups_stand,
    check_known_replacements,
    check_not_cleaned,
    empty_instants,
    gone_files,
    removed_logs,
    rewriting_services,
    touched_partitions,
    unread_changes,
)
from tidegate.source.hudi.table.merge_rules import MergeMode, merge_rules
from tidegate.source.hudi.table.partition_values import partition_values
from tidegate.source.hudi.timeline.kept import kept_before
from tidegate.source.hudi.timeline.loaded import LoadedTimeline, State
from tidegate.source.hudi.timeline.writes import (
    active_writes,
    archived_writes,
    newest_write,
    times_in_order,
    writes_following,
)
from tidegate.source.named_columns import decode_schema
from tidegate.source.slicing import Units

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.plan import Piece, Pin
    from tidegate.physical import RowGroup
    from tidegate.source.hudi.access import TableAccess
    from tidegate.source.hudi.slices.window_slices import Touched
    from tidegate.source.hudi.timeline.loaded import Order


@dataclass(frozen=True)
class _Window:
    """The writes of a window, and the state that they lead to."""

    timeline: LoadedTimeline
    state: State
    start: Order | None
    writes: Sequence[Order]
    cleaned: str | None = None
    """The end of the window, if its files may be gone: the state is then the newest one."""

    @property
    def listed(self) -> Listed:
        read = InstantAction("write", "read", len(self.writes))
        return Listed((read,), events=partition_events(self.timeline, self.writes), unmerged=True)

    @cached_property
    def services(self) -> frozenset[str]:
        """The services that may have moved rows of the window."""
        if self.start is None:
            return frozenset()
        return rewriting_services(self.timeline, self.start, self.state.until)

    def touched(self) -> Mapping[str, Touched]:
        return touched_partitions(self.timeline, self.writes, self.state.until)


@dataclass(frozen=True)
class _Listing:
    """The slices of partitions, from one listing of their folders."""

    slices: Sequence[Slice]
    folders: FolderFiles
    later: LoadedTimeline
    """Listed after the folders."""


class HudiSlicing:
    """The `Slicing` of one table."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access
        self._making = PieceMaker(access.files)

    def units(
        self,
        pin: Pin,
        window: InstantRange,
        *,
        whole: bool = False,
        event_time: EventColumn | None = None,
        enough: int | None = None,
    ) -> Units:
        """List the slices of a window, or of the state as of its end.

        Raises:
            HudiFilesCleaned: files of the state may be gone (HUDI-W13).
            HudiFileLost: a file that a done write names is not there (HUDI-F14).
            HudiChangesLost: files that tell what was changed are gone.
            HudiCommitTimesLost: a service wrote rows with its own commit time (HUDI-W18).
            HudiReplacementUnknown: see `check_known_replacements`.
            HudiPartitionUnreadable: see `partition_values`.
            HudiInstantGone, HudiHistoryLost: see `writes_following`.
        """
        del event_time, enough
        config, start = self._access.config, window.start_exclusive
        timeline = self._access.timeline(pin)
        end = timeline.order(window.end_inclusive)
        mode = config.read.mode
        columns = decode_schema(pin.details["table_schema"])
        is_first = start is None and (mode != CHANGELOG or config.start.kind == "full")
        if whole or is_first or mode == "snapshot":
            state = self._state(timeline, end)
            check_not_cleaned(timeline, state.until)
            pieces, short = self._whole(timeline, state)
            if mode == REPLACING:
                # Rows are given these values when they are read: better refused here.
                folders = {details_of(it.slice)["partition"] for it in pieces}
                partition_values(timeline.table, columns, folders)
            reloads = self._access.reloads if whole else None
            listed = Listed(unmerged=timeline.table.is_merge_on_read or None)
            return Units(pieces, notes=((reloads,) if reloads else ()) + short, listed=listed)
        writes = [it for it in _writes(timeline, start) if it <= end]
        begin = timeline.order(start) if start else None
        found = self._window(timeline, end, begin, writes)
        if mode == REPLACING:
            places = found.touched()
            replaced = partition_values(timeline.table, columns, sorted(places))
            pieces, short = self._whole(timeline, found.state, places)
            notes = (*self._notes(found), *short)
            return Units(pieces, notes, listed=found.listed, replaced=replaced)
        check_known_replacements(timeline, writes)
        if mode == CHANGELOG:
            pieces, short = self._changelog(found)
            return Units(pieces, (*self._notes(found), *short), listed=found.listed)
        found, pieces, short = self._changed(found)
        unread = () if mode == WITH_DELETES else unread_changes(timeline, writes)
        return Units(pieces, (*self._notes(found), *unread, *short), listed=found.listed)

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a base file; a slice of logs only is one group."""
        return self._making.row_groups(piece)

    def replaced_columns(self, pin: Pin) -> tuple[str, ...]:
        """Return the partition columns in mode `rebuild_partitions`, and none in the others."""
        if self._access.config.read.mode != REPLACING:
            return ()
        return self._access.timeline(pin).table.partition_fields

    def _state(self, timeline: LoadedTimeline, end: Order) -> State:
        """Return the state that is read: of modes that look at a window alone, exactly its end."""
        if self._access.config.read.mode in ONLY_WINDOW:
            return State(timeline, end)
        return timeline.state_after(end)

    def _window(
        self, timeline: LoadedTimeline, end: Order, start: Order | None, writes: Sequence[Order]
    ) -> _Window:
        """Return a window with the state that it is read in: of its end, or what is left of that.

        Raises:
            HudiFilesCleaned: files of its end may be gone, and the pipeline says `fail`, or the
                window has no start, so that the newest state would have rows of later ones.
        """
        found = _Window(timeline, self._state(timeline, end), start, writes)
        try:
            check_not_cleaned(timeline, found.state.until)
        except HudiFilesCleaned as cleaned:
            return self._what_is_left(found, cleaned)
        return found

    def _what_is_left(self, window: _Window, cleaned: HudiFilesCleaned) -> _Window:
        """Return a window whose files may be gone with the newest state, if the pipeline says so.

        Raises:
            HudiFilesCleaned: it says `fail`, or the window has that state, or no start.
        """
        newest = newest_write(window.timeline)
        fails = self._access.config.on_cleaned == "fail" or window.cleaned is not None
        if fails or window.start is None or newest is None:
            raise cleaned
        state = window.timeline.state_after(newest)
        return replace(window, state=state, cleaned=cleaned.instant)

    def _notes(self, window: _Window) -> tuple[str, ...]:
        """Return what was removed of a window's files, or may soon be (HUDI-W12, W14)."""
        config = self._access.config
        notes = [*empty_instants(window.timeline, window.writes)]
        if window.cleaned is not None:
            lacks = (
                "partitions are read as they are there"
                if config.read.mode == REPLACING
                else "rows that were changed or deleted since are not returned"
            )
            notes.append(
                f"{gone_files(window.timeline, f'files of the state after {window.cleaned}')}, so "
                "that `source.on_cleaned: snapshot` reads the window from the state after "
                f"{window.state.until[1]}: {lacks}, and planning it again may return other rows"
            )
        needs_files = config.read.emits_kinds or config.limits.model_dump(exclude_none=True)
        if needs_files and window.start is not None:
            kept = kept_before(window.timeline, window.start)
            warning = kept.warning(config.warn_kept_below) if kept else None
            notes += [warning] if warning else []
        return tuple(notes)

    def _listing(self, timeline: LoadedTimeline, state: State, places: Iterable[str]) -> _Listing:
        """List the slices of partitions; a clean may have thinned them since the timeline was.

        So the timeline is listed again, for its cleans alone (HUDI-T14).
        """
        folders = FolderFiles(self._access.files)
        slices = list(folders.slices(timeline, state, places))
        later = LoadedTimeline(self._access.files, timeline.table)
        check_not_cleaned(later, state.until)
        return _Listing(slices, folders, later)

    def _whole(
        self, timeline: LoadedTimeline, state: State, places: Collection[str] | None = None
    ) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
        """Return partitions as of a state, by default all, and what their logs lack.

        A partition is known by Hudi's own file in its folder, or because a write names it.
        """
        named = NamedFiles(timeline, state)
        if places is None:
            places = named.partitions.union(partitions(self._access.files))
        listing = self._listing(timeline, state, places)
        groups = named.groups(places)
        short = named.check(listing.folders, listing.later, groups)
        pieces = self._making.pieces(
            SliceRead(slice, self._details(slice, timeline, state, short))
            for slice in listing.slices
        )
        return pieces, tuple(it.note for it in short)

    def _changed(self, window: _Window) -> tuple[_Window, tuple[Piece, ...], tuple[str, ...]]:
        """Return a window as it can be read, its slices, and what their logs lack.

        Raises:
            HudiFilesCleaned: see `_what_is_left`.
        """
        try:
            return window, *self._touched_slices(window)
        except HudiFilesCleaned as cleaned:
            left = self._what_is_left(window, cleaned)
            return left, *self._touched_slices(left)

    def _touched_slices(self, window: _Window) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
        """Return the slices that may have rows of a window, and what their logs lack."""
        timeline, state, touched = window.timeline, window.state, window.touched()
        listing = self._listing(timeline, state, touched)
        standing = listing.slices
        check_groups_stand(timeline, state, touched, standing)
        found = standing
        if window.cleaned is None:
            found = [it for it in standing if it.group in touched[it.partition].groups]
        # What was written before counts where the window's records are merged with it.
        merges = (
            timeline.table.is_merge_on_read and self._access.config.read.mode not in ONLY_WINDOW
        )
        named = NamedFiles(timeline, state, None if merges else window.start)
        short = named.check(
            listing.folders, listing.later, {(it.partition, it.group) for it in found}
        )
        if self._access.config.read.mode == WITH_DELETES:
            reads = _in_order(self._with_deletes(window, touched, found, listing, short), window)
        else:
            reads = (self._changed_slice(it, window, touched, listing, short) for it in found)
        notes = [it.note for it in short]
        if merges and merge_rules(timeline.table).mode is MergeMode.EVENT_TIME:
            notes += removed_logs(timeline, state, touched, listing.folders)
        return self._making.pieces(reads), tuple(notes)

    def _changed_slice(
        self,
        slice: Slice,
        window: _Window,
        touched: Mapping[str, Touched],
        listing: _Listing,
        short: Collection[ShortLog],
    ) -> SliceRead:
        of_window = touched[slice.partition]
        details = self._details(slice, window.timeline, window.state, short)
        details["instants"] = of_window.instants
        history = self._making.history(slice, of_window, listing.folders)
        return SliceRead(slice, details, history, window.services)

    def _with_deletes(
        self,
        window: _Window,
        touched: Mapping[str, Touched],
        found: Iterable[Slice],
        listing: _Listing,
        short: Collection[ShortLog],
    ) -> Iterator[SliceRead]:
        """Yield the slices of a window, and those that are not there any more (HUDI-R6)."""
        assert window.start is not None
        timeline, until = window.timeline, window.state.until
        deletes = WindowDeletes(listing.folders, timeline, window.writes, window.start, until)
        rewritten = deletes.rewritten()

        def told(slice: Slice) -> SliceRead:
            read = self._changed_slice(slice, window, touched, listing, short)
            before = rewritten.get((slice.partition, slice.group))
            if before is None:
                return read
            others = (*read.others, self._making.base(before.previous, DeltaKind.PREVIOUS))
            return replace(read, details=read.details | {"removed_by": before.by}, others=others)

        for slice in found:
            yield told(slice)
        standing = {(it.partition, it.group) for it in listing.slices}
        for ended in deletes.ended(standing):
            if ended.removed_by is None:
                read = told(ended.slice)
                as_it_ended = self._details(ended.slice, timeline, ended.state, short)
                yield replace(read, details=read.details | as_it_ended | {"only_deletes": True})
            else:
                details = self._details(ended.slice, timeline, ended.state)
                yield SliceRead(ended.slice, details | {"gone_since": ended.removed_by})

    def _changelog(self, window: _Window) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
        """Return the files of each write (HUDI-R7), and what its logs lack."""
        changes = list(WindowChanges(self._access.files, window.timeline, window.writes))
        pieces = self._making.pieces(self._change(it, window) for it in changes)
        short = (log for it in changes if not isinstance(it, Removed) for log in it.short)
        return pieces, tuple(it.note for it in short)

    def _change(self, found: Written | Logged | Removed, window: _Window) -> SliceRead:
        timeline = window.timeline
        if isinstance(found, Removed):
            details = self._details(found.slice, timeline, found.state)
            details |= {"gone_since": found.instant, "ordinal": found.ordinal}
            return SliceRead(found.slice, details)
        if isinstance(found, Logged):
            slice = Slice(found.partition, found.logs[0].group, None, found.logs)
        elif isinstance(found.file, BaseFile):
            slice = Slice(found.partition, found.file.group, found.file)
        else:
            slice = Slice(found.partition, found.file.group, None, (found.file,))
        details = self._details(slice, timeline, window.state, found.short)
        details |= {"instants": (found.instant,), "ordinal": found.ordinal}
        if isinstance(found, Logged):
            images = (self._making.base(file, kind) for kind, file in found.files.items())
            return SliceRead(slice, details, tuple(images))
        if found.only_inserts:
            details["only_inserts"] = True
        if found.previous is None:
            return SliceRead(slice, details)
        details["removed_by"] = found.instant
        return SliceRead(slice, details, (self._making.base(found.previous, DeltaKind.PREVIOUS),))

    def _details(
        self,
        slice: Slice,
        timeline: LoadedTimeline,
        state: State,
        short: Collection[ShortLog] = (),
    ) -> SliceDetails:
        details: SliceDetails = {"partition": slice.partition, "group": slice.group}
        if timeline.table.has_mixed_logs:
            details["until"] = state.until
        lacking = {it.path for it in short}.intersection(log.path for log in slice.logs)
        if lacking:
            details["short"] = tuple(self._access.files.path(it) for it in sorted(lacking))
        return details


def _in_order(reads: Iterable[SliceRead], window: _Window) -> Iterable[SliceRead]:
    """Return slices of changes with the times by which those are in order."""
    times = times_in_order(window.timeline, window.writes)
    if not times:
        return reads
    return (replace(it, details=it.details | {"times": times}) for it in reads)


def _writes(timeline: LoadedTimeline, start: Instant | None) -> Iterable[Order]:
    """Return the writes that follow an instant; without one, all that are known."""
    if start is not None:
        return writes_following(timeline, start)
    return sorted({*archived_writes(timeline), *active_writes(timeline)})
