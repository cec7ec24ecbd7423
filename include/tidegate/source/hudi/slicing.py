"""The file slices of a Hudi table's windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.model.plan_record import InstantAction, Listed
from tidegate.source.hudi.pieces import PieceMaker, SliceRead
from tidegate.source.hudi.slices.changes import Removed, WindowChanges
from tidegate.source.hudi.slices.deletes import WindowDeletes
from tidegate.source.hudi.slices.details import (
    CHANGELOG,
    ONLY_WINDOW,
    REPLACING,
    WITH_DELETES,
    SliceDetails,
)
from tidegate.source.hudi.slices.file_groups import Slice
from tidegate.source.hudi.slices.listing import partitions, slices_of
from tidegate.source.hudi.slices.names import BaseFile
from tidegate.source.hudi.slices.window_slices import (
    check_not_cleaned,
    touched_partitions,
    unread_changes,
)
from tidegate.source.hudi.table.columns import COMMIT_TIME
from tidegate.source.hudi.table.partition_values import partition_values
from tidegate.source.hudi.timeline.loaded import LoadedTimeline, State
from tidegate.source.hudi.timeline.writes import active_writes, archived_writes, writes_after
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

_META_FIELDS = "hoodie.populate.meta.fields"


@dataclass(frozen=True)
class _Window:
    """The writes of a window, and the state that they lead to."""

    timeline: LoadedTimeline
    state: State
    start: Order | None
    writes: Sequence[Order]

    @property
    def listed(self) -> Listed:
        return Listed((InstantAction("write", "read", len(self.writes)),))

    def touched(self) -> Mapping[str, Touched]:
        return touched_partitions(self.timeline, self.writes, self.state.until)


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
            HudiChangesLost: files that tell what was changed are gone.
            HudiPropertyUnsupported: rows do not have the time of their commit (HUDI-W17).
            HudiPartitionUnreadable: see `partition_values`.
            HudiInstantGone, HudiHistoryLost: see `writes_after`.
        """
        del event_time, enough
        config, start = self._access.config, window.start_exclusive
        timeline = self._access.timeline(pin)
        end = timeline.order(window.end_inclusive)
        state = self._state(timeline, end)
        check_not_cleaned(timeline, state.until)
        mode = config.read.mode
        is_first = start is None and not (mode == CHANGELOG and config.start.kind == "earliest")
        if whole or is_first or mode == "snapshot":
            return Units(self._whole(timeline, state, partitions(self._access.files)))
        writes = [it for it in _writes(timeline, start) if it <= end]
        found = _Window(timeline, state, timeline.order(start) if start else None, writes)
        columns = decode_schema(pin.details["table_schema"])
        if mode == REPLACING:
            places = found.touched()
            replaced = partition_values(timeline.table, columns, sorted(places))
            pieces = self._whole(timeline, state, places)
            return Units(pieces, listed=found.listed, replaced=replaced)
        if COMMIT_TIME not in columns.names:
            raise timeline.table.refusal(
                _META_FIELDS, "true, because changes are told by commit times"
            )
        if mode == CHANGELOG:
            return Units(self._making.pieces(self._changelog(found)), listed=found.listed)
        notes = () if mode == WITH_DELETES else unread_changes(timeline, writes)
        return Units(self._changed(found), notes=notes, listed=found.listed)

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a base file; a slice of logs only is one group."""
        return self._making.row_groups(piece)

    def _state(self, timeline: LoadedTimeline, end: Order) -> State:
        """Return the state that is read: of modes that look at a window alone, exactly its end."""
        if self._access.config.read.mode in ONLY_WINDOW:
            return State(timeline, end)
        return timeline.state_after(end)

    def _listed(
        self, timeline: LoadedTimeline, state: State, places: Iterable[str]
    ) -> Sequence[Slice]:
        """List the slices of partitions; a clean may have thinned them since the timeline was."""
        every = list(slices_of(self._access.files, timeline, state, places))
        check_not_cleaned(LoadedTimeline(self._access.files, timeline.table), state.until)
        return every

    def _whole(
        self, timeline: LoadedTimeline, state: State, places: Iterable[str]
    ) -> tuple[Piece, ...]:
        """Return partitions as of a state."""
        return self._making.pieces(
            SliceRead(slice, _details(slice, timeline, state))
            for slice in self._listed(timeline, state, places)
        )

    def _changed(self, window: _Window) -> tuple[Piece, ...]:
        """Return the slices that may have rows of a window."""
        touched = window.touched()
        standing = self._listed(window.timeline, window.state, touched)
        found = [it for it in standing if it.group in touched[it.partition].groups]
        if self._access.config.read.mode == WITH_DELETES:
            groups = {(it.partition, it.group) for it in standing}
            return self._making.pieces(self._with_deletes(window, touched, found, groups))
        return self._making.pieces(
            self._changed_slice(it, window, window.state, touched) for it in found
        )

    def _changed_slice(
        self, slice: Slice, window: _Window, state: State, touched: Mapping[str, Touched]
    ) -> SliceRead:
        of_window = touched[slice.partition]
        details = _details(slice, window.timeline, state)
        details["instants"] = of_window.instants
        return SliceRead(slice, details, self._making.history(slice, of_window))

    def _with_deletes(
        self,
        window: _Window,
        touched: Mapping[str, Touched],
        found: Iterable[Slice],
        standing: Collection[tuple[str, str]],
    ) -> Iterator[SliceRead]:
        """Yield the slices of a window, and those that are not there any more (HUDI-R6)."""
        assert window.start is not None
        timeline, until = window.timeline, window.state.until
        deletes = WindowDeletes(self._access.files, timeline, window.writes, window.start, until)
        rewritten = deletes.rewritten()

        def told(slice: Slice, state: State) -> SliceRead:
            read = self._changed_slice(slice, window, state, touched)
            before = rewritten.get((slice.partition, slice.group))
            if before is None:
                return read
            others = (*read.others, self._making.previous(before.previous))
            return SliceRead(slice, read.details | {"removed_by": before.by}, others)

        for slice in found:
            yield told(slice, window.state)
        for ended in deletes.ended(standing):
            if ended.removed_by is None:
                read = told(ended.slice, ended.state)
                yield replace(read, details=read.details | {"only_deletes": True})
            else:
                details = _details(ended.slice, timeline, ended.state)
                yield SliceRead(ended.slice, details | {"gone_since": ended.removed_by})

    def _changelog(self, window: _Window) -> Iterator[SliceRead]:
        """Yield the files of each write (HUDI-R7)."""
        timeline = window.timeline
        for found in WindowChanges(self._access.files, timeline, window.writes):
            if isinstance(found, Removed):
                details = _details(found.slice, timeline, found.state)
                details |= {"gone_since": found.instant, "ordinal": found.ordinal}
                yield SliceRead(found.slice, details)
                continue
            file = found.file
            if isinstance(file, BaseFile):
                slice = Slice(found.partition, file.group, file)
            else:
                slice = Slice(found.partition, file.group, None, (file,))
            details = _details(slice, timeline, window.state)
            details |= {"instants": (found.instant,), "ordinal": found.ordinal}
            if found.previous is None:
                yield SliceRead(slice, details)
            else:
                details["removed_by"] = found.instant
                yield SliceRead(slice, details, (self._making.previous(found.previous),))


def _writes(timeline: LoadedTimeline, start: Instant | None) -> Iterable[Order]:
    """Return the writes that follow an instant; without one, all that are known."""
    if start is not None:
        return writes_after(timeline, timeline.order(start))
    return sorted({*archived_writes(timeline), *active_writes(timeline)})


def _details(slice: Slice, timeline: LoadedTimeline, state: State) -> SliceDetails:
    details: SliceDetails = {"partition": slice.partition, "group": slice.group}
    if timeline.table.has_mixed_logs:
        details["until"] = state.until
    return details
