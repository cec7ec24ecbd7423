"""The file slices of a Hudi table's windows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tidegate.model.file_slice import Delta, DeltaKind, FileSlice
from tidegate.model.plan import Piece
from tidegate.model.plan_record import InstantAction, Listed
from tidegate.physical import RowGroup
from tidegate.physical.opening import open_rows
from tidegate.read.open_piece import damage_named
from tidegate.source.hudi.slices.changes import Removed, WindowChanges
from tidegate.source.hudi.slices.deletes import WindowDeletes
from tidegate.source.hudi.slices.details import (
    CHANGELOG,
    LOG_ONLY,
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tidegate.model.event_column import EventColumn
    from tidegate.model.file_slice import Deltas
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.plan import Pin
    from tidegate.physical import PhysicalRows
    from tidegate.source.hudi.access import TableAccess
    from tidegate.source.hudi.slices.names import LogFile
    from tidegate.source.hudi.slices.window_slices import Touched
    from tidegate.source.hudi.timeline.loaded import Order

_META_FIELDS = "hoodie.populate.meta.fields"
_THREADS = 16
_LOG_BYTES_PER_ROW = 100
"""Bytes of a log for one record, to guess how many a slice without a base file has."""


class HudiSlicing:
    """The `Slicing` of one table."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access

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
            HudiPropertyUnsupported: rows do not have the time of their commit (HUDI-W17).
            HudiInstantGone, HudiHistoryLost: see `writes_after`.
        """
        del event_time, enough
        timeline = self._access.timeline(pin)
        end = timeline.order(window.end_inclusive)
        state = self._state(timeline, end)
        check_not_cleaned(timeline, state.until)
        start = window.start_exclusive
        mode = self._access.config.read.mode
        reads_writes = mode == CHANGELOG and not whole and self._reads_writes(window)
        schema = decode_schema(pin.details["table_schema"])
        is_changes = reads_writes or not (whole or start is None or mode in {"snapshot", REPLACING})
        if is_changes and COMMIT_TIME not in schema.names:
            raise timeline.table.refusal(
                _META_FIELDS, "true, because changes are told by commit times"
            )
        if reads_writes:
            known = self._writes(timeline, start)
            return self._changelog(timeline, [it for it in known if it <= end], state)
        if whole or start is None or mode == "snapshot":
            places = partitions(self._access.files)
            every = list(slices_of(self._access.files, timeline, state, places))
            self._check_still_there(timeline, state)
            return Units(tuple(self._pieces(every, timeline, state, None)))
        writes = [it for it in writes_after(timeline, timeline.order(start)) if it <= end]
        touched = touched_partitions(timeline, writes, state.until)
        listed = Listed((InstantAction("write", "read", len(writes)),))
        if mode == REPLACING:
            replaced = partition_values(timeline.table, schema, sorted(touched))
            every = list(slices_of(self._access.files, timeline, state, touched))
            self._check_still_there(timeline, state)
            pieces = tuple(self._pieces(every, timeline, state, None))
            return Units(pieces, listed=listed, replaced=replaced)
        standing = list(slices_of(self._access.files, timeline, state, touched))
        found = [it for it in standing if it.group in touched[it.partition].groups]
        self._check_still_there(timeline, state)
        if mode == WITH_DELETES:
            files = self._access.files
            deletes = WindowDeletes(files, timeline, writes, timeline.order(start), state.until)
            changed = self._with_deletes(found, standing, deletes, timeline, state, touched)
            return Units(tuple(changed), listed=listed)
        return Units(
            tuple(self._pieces(found, timeline, state, touched)),
            notes=unread_changes(timeline, writes),
            listed=listed,
        )

    def _reads_writes(self, window: InstantRange) -> bool:
        """Return whether a window has a start, or begins with the table's first write."""
        return window.start_exclusive is not None or self._access.config.start.kind == "earliest"

    def _writes(self, timeline: LoadedTimeline, start: Instant | None) -> Iterable[Order]:
        if start is not None:
            return writes_after(timeline, timeline.order(start))
        return sorted({*archived_writes(timeline), *active_writes(timeline)})

    def _changelog(self, timeline: LoadedTimeline, writes: Sequence[Order], state: State) -> Units:
        """List the files of each write (HUDI-R7).

        Raises:
            HudiChangesLost: one of them is not there any more.
        """
        pieces = []
        for found in WindowChanges(self._access.files, timeline, writes):
            if isinstance(found, Removed):
                details = _details(found.slice, timeline, found.state)
                details |= {"gone_since": found.instant, "ordinal": found.ordinal}
                pieces.append(self._piece(found.slice, details))
                continue
            file = found.file
            slice = Slice(
                found.partition,
                file.group,
                file if isinstance(file, BaseFile) else None,
                () if isinstance(file, BaseFile) else (file,),
            )
            details = _details(slice, timeline, state)
            details |= {"instants": (found.instant,), "ordinal": found.ordinal}
            before = found.previous
            if before is not None:
                details["removed_by"] = found.instant
            pieces.append(self._piece(slice, details, (self._previous(before),) if before else ()))
        listed = Listed((InstantAction("write", "read", len(writes)),))
        return Units(tuple(pieces), listed=listed)

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a base file; a slice of logs only is one group."""
        if piece.slice.file_format == LOG_ONLY:
            return (RowGroup(piece.rows, piece.size_bytes),)
        with damage_named(piece.path), self._open(piece.slice) as file:
            return file.row_groups

    def _check_still_there(self, timeline: LoadedTimeline, state: State) -> None:
        """Refuse a listing of files that a clean may have thinned since the timeline was listed."""
        check_not_cleaned(LoadedTimeline(self._access.files, timeline.table), state.until)

    def _state(self, timeline: LoadedTimeline, end: Order) -> State:
        """Return the state that is read: of modes that look at a window alone, exactly its end."""
        if self._access.config.read.mode in ONLY_WINDOW:
            return State(timeline, end)
        return timeline.state_after(end)

    def _pieces(
        self,
        found: Iterable[Slice],
        timeline: LoadedTimeline,
        state: State,
        touched: Mapping[str, Touched] | None,
    ) -> Iterator[Piece]:
        def piece(slice: Slice) -> Piece:
            details = _details(slice, timeline, state)
            if touched is None:
                return self._piece(slice, details)
            of_window = touched[slice.partition]
            details["instants"] = of_window.instants
            return self._piece(slice, details, self._history(slice, of_window))

        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(piece, found)

    def _with_deletes(
        self,
        found: Iterable[Slice],
        standing: Iterable[Slice],
        deletes: WindowDeletes,
        timeline: LoadedTimeline,
        state: State,
        touched: Mapping[str, Touched],
    ) -> Iterator[Piece]:
        """Yield the slices of a window, and those that are not there any more (HUDI-R6)."""
        rewritten = deletes.rewritten()

        def piece(slice: Slice, state: State, *, only_deletes: bool = False) -> Piece:
            details = _details(slice, timeline, state)
            of_window = touched[slice.partition]
            details["instants"] = of_window.instants
            deltas = self._history(slice, of_window)
            before = rewritten.get((slice.partition, slice.group))
            if before is not None:
                details["removed_by"] = before.by
                deltas += (self._previous(before.previous),)
            if only_deletes:
                details["only_deletes"] = True
            return self._piece(slice, details, deltas)

        for slice in found:
            yield piece(slice, state)
        for ended in deletes.ended({(it.partition, it.group) for it in standing}):
            if ended.removed_by is None:
                yield piece(ended.slice, ended.state, only_deletes=True)
                continue
            details = _details(ended.slice, timeline, ended.state)
            details["gone_since"] = ended.removed_by
            yield self._piece(ended.slice, details)

    def _piece(self, slice: Slice, details: SliceDetails, others: Deltas = ()) -> Piece:
        path = self._access.files.path
        logs = (*(self._delta(log, DeltaKind.LOG) for log in slice.logs), *others)
        if slice.base is None:
            size = sum(log.size_bytes for log in slice.logs)
            only_logs = FileSlice(
                logs[0].path, LOG_ONLY, logs[0].file_bytes, deltas=logs, details=dict(details)
            )
            rows = max(1, size // _LOG_BYTES_PER_ROW)
            return Piece(only_logs, rows, logs[0].file_bytes)
        base = FileSlice(
            path(slice.base.path),
            slice.base.file_format,
            slice.base.size_bytes,
            deltas=logs,
            details=dict(details),
        )
        with damage_named(base.path), self._open(base) as file:
            rows = file.rows
        return Piece(base, rows, base.file_bytes)

    def _history(self, slice: Slice, touched: Touched) -> Deltas:
        """Return the logs of a window that belong to other slices by now (HUDI-F13)."""
        return tuple(
            self._delta(log, DeltaKind.HISTORY)
            for log in slice.history
            if log.path.rpartition("/")[2] in touched.files
        )

    def _previous(self, base: BaseFile) -> Delta:
        path, size = self._access.files.path(base.path), base.size_bytes
        return Delta(path, DeltaKind.PREVIOUS, base.file_format, size, rows=0, sequence=0)

    def _delta(self, log: LogFile, kind: DeltaKind) -> Delta:
        path = self._access.files.path(log.path)
        return Delta(path, kind, "log", log.size_bytes, rows=0, sequence=0)

    def _open(self, slice: FileSlice) -> PhysicalRows:
        below = slice.path.removeprefix(self._access.files.root).lstrip("/")
        return open_rows(self._access.files.open(below), slice.file_format)


def _details(slice: Slice, timeline: LoadedTimeline, state: State) -> SliceDetails:
    details: SliceDetails = {"partition": slice.partition, "group": slice.group}
    if timeline.table.has_mixed_logs:
        details["until"] = state.until
    return details
