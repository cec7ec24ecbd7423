"""One directory of Parquet files as a source: pins a listing, plans differences of two."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import (
    ColumnMissing,
    DefaultPartitionForeign,
    FileCameBack,
    HistoryChanged,
    InstantNotFound,
    SourceEmptied,
    SourceRewritten,
    StateFileDamaged,
    StateFileLost,
)
from tidegate.model.file_slice import FileSlice
from tidegate.model.instant import aware_time
from tidegate.model.partition import DEFAULT_NAME, HIVE_DEFAULT_NAME, Partition
from tidegate.model.plan import Piece, Pin, WindowKind
from tidegate.model.report import CheckpointState
from tidegate.source.columns import select_columns
from tidegate.source.event_bounds import EventUnit
from tidegate.source.files.columns import decode_schema, encode_schema, table_schema
from tidegate.source.files.footers import FolderColumns, read_columns, side_by_side
from tidegate.source.files.listing import (
    ListedFile,
    Listing,
    ListingDifference,
    ListingHead,
    came,
    came_before,
    cut,
    cuts,
    difference,
    listing_id,
    listing_time,
    number_of,
)
from tidegate.source.files.pruning import PartitionPruning
from tidegate.source.files.reader import MODIFIED, PARTITION, FilesReader, open_listed, open_slice
from tidegate.source.files.starts import before_time, first_checkpoint
from tidegate.source.files.store import ListingStore
from tidegate.source.files.walk import list_directory
from tidegate.source.protocol import Following, InstantReport, Units, pinned_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import FilesSourceConfig
    from tidegate.errors import TerminalError
    from tidegate.model.instant import DataInterval, Instant, InstantRange
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.physical import PhysicalRows, RowGroup
    from tidegate.source.protocol import EventColumn, Volume
    from tidegate.storage import Storage

_INSTANT = timedelta(microseconds=1)
_NULL_NAMES = {DEFAULT_NAME, HIVE_DEFAULT_NAME}
_READ_WHOLE = (
    "read the whole directory once: set `read.mode: snapshot` below `source`, load with `tidegate "
    "load PIPELINE`, and take it out again"
)
_READ_WHOLE_FROM_THE_START = (
    "read the whole directory once: set `read.mode: snapshot` below `source` and take "
    "`source.start` out, load with `tidegate load PIPELINE`, and change both back; what came "
    "before the start is published as well, so that no backfill brings it again"
)
_NO_HISTORY = (
    "leave the interval out: what came before the first window cannot be backfilled without the "
    "listing of the start"
)


class _Checked:
    """Checks the schemas of files before a window is planned on them; equal ones once."""

    def __init__(self, reading: FilesReader, event_time: EventColumn | None) -> None:
        self._reading = reading
        self._event_time = event_time
        self._known: set[pa.Schema] = set()

    def bounds(self, rows: PhysicalRows) -> TimeBounds | None:
        """Return the event times of an open file; None where its footer does not say."""
        column = self._event_time
        if column is None or column.name not in rows.schema.names:
            return None
        counts = EventUnit.of(rows.schema.field(column.name).type, column)
        return counts.read_footer(rows, column.name) if counts else None

    def check(self, piece: Piece, schema: pa.Schema) -> None:
        if schema not in self._known:
            self._reading.check(piece, schema)
            self._known.add(schema)


class FilesSource:
    """The `Source` of one directory of Parquet files.

    *Runs on:* the planner. *Called:* `pin` at each look, which writes a listing where something
    changed; the rest only reads. *Failure:* see `ListingStore`; safe to repeat.
    """

    def __init__(
        self,
        config: FilesSourceConfig,
        storage: Storage,
        listings_root: str | None,
        extra_columns: Sequence[str] = (),
    ) -> None:
        """Prepare; nothing is listed yet.

        Args:
            config: the pipeline's `source`.
            storage: where listings are kept.
            listings_root: their directory; None keeps them in memory.
            extra_columns: read besides `read.columns`, at the end: what a filter names.
        """
        self._config = config
        self._root = str(config.path).rstrip("/")
        # A start and a read of everything exclude each other.
        remedy = _READ_WHOLE if config.start.kind == "full" else _READ_WHOLE_FROM_THE_START
        self._store = ListingStore(storage, listings_root, remedy)
        self._extra_columns = tuple(extra_columns)

    @property
    def name(self) -> str:
        """The directory."""
        return self._root

    def places(self) -> tuple[str, ...]:
        """Name the root."""
        return (self._root,)

    def pin(
        self,
        now: datetime,
        expected_identity: str | None = None,
        until: datetime | None = None,
        after: Instant | None = None,
    ) -> Pin:
        """List the directory; a listing unlike the last one becomes an instant.

        Its time is that of its youngest new file: a file belongs to the interval that it came in,
        whenever that is listed. The identity is the root that the pipeline file names, so there
        is nothing to compare. Files that the checkpoint's listing knows and that are gone are
        remembered, so that they are not new when they come back.

        Raises:
            StateFileLost, StateFileDamaged: the checkpoint's listing is not there as written.
        """
        del expected_identity
        listing, before = list_directory(self._config), self._known(after)
        # What is read whole is new each time, and never but all that stands.
        passed = Listing(()) if self._reads_whole else before
        if until is not None and not self._reads_whole:
            listing = came_before(listing, until, before.known)
        listing = listing.remembering(passed)
        if not listing.files and after is None:
            schema = self._chosen(FolderColumns(pa.schema([])))
            return Pin(self._root, None, (), {"schema": encode_schema(schema)})
        # What is read whole belongs to the interval that it is read for.
        latest = until - _INSTANT if until is not None and self._reads_whole else None
        moment = listing_time(listing, passed.known, min(now, latest or now), after)
        columns = functools.cache(lambda: self._columns(listing, before, after))
        head = self._store.record(listing, moment, columns, latest=latest)
        schema = self._chosen(self._completed(head, listing.files))
        details = {"schema": encode_schema(schema)}
        return Pin(self._root, head.instant, pinned_columns(schema), details)

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Pin an earlier listing; the schema stays."""
        self._store.head(instant, self._root)
        return replace(pin, head=instant)

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Pin the listing of a checkpoint, to read all that stands in it.

        Raises:
            FileCameBack: it calls a file gone that stands again.
        """
        standing = {file.path for file in self._head(pin).files}
        for file in self._listing(checkpoint).gone:
            if file.path in standing:
                raise FileCameBack(source=self._root, path=file.path)
        return self.at(pin, checkpoint)

    def instant(self, pin: Pin, text: str) -> Instant:
        """Find a listing by id or number, or the last one at or before an ISO time."""
        known = self._up_to_head(pin)
        if text.isdecimal():
            known = [instant for instant in known if number_of(instant) == int(text)]
        elif moment := aware_time(text):
            known = before_time(known, moment, inclusive=True)
        else:
            known = [instant for instant in known if instant.id == text]
        if not known:
            raise InstantNotFound(source=self._root, instant=text)
        return known[-1]

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """Return what `source.start` begins after: a listing, or the files up to a time.

        None reads the whole directory.
        """
        known = self._up_to_head(pin)
        return first_checkpoint(known, lambda: self._moments(pin), self._config.start, self._root)

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """Return the pinned listing, to load or, in mode `snapshot`, to read whole.

        What is read whole is compared with nothing, so that it is also a way on where listings
        were lost.

        Raises:
            SourceRewritten: as `instants`.
            SourceEmptied: what is read whole has no file any more, and the pipeline says to fail.
        """
        if not self._reads_whole:
            return Following(self.instants(pin, after), after)
        files = len(self._known(after).files)
        if files and not self._head(pin).files and self._refuses_changes:
            raise SourceEmptied(source=self._root, files=files)
        is_known = pin.head is None or (after is not None and self._is_kept(pin.head, after))
        found = () if is_known or pin.head is None else (pin.head,)
        return Following(found, None, WindowKind.RELOAD)

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """Return how many files came after a checkpoint, or what stands against it."""
        head = pin.head.id if pin.head else None
        if self._reads_whole:
            if pin.head is None or self._is_kept(pin.head, checkpoint):
                return CheckpointState("caught up", "nothing to read", checkpoint.id, head)
            files = _counted(len(self._head(pin).files))
            return CheckpointState(
                "in lineage", f"the next load reads all {files}", checkpoint.id, head
            )
        try:
            new = [
                file
                for instant in self.instants(pin, checkpoint)
                for file in self._difference(checkpoint, instant).added
            ]
        except (InstantNotFound, SourceRewritten, StateFileLost) as refused:
            return CheckpointState("unknown", str(refused), checkpoint.id, head)
        if not new:
            return CheckpointState("caught up", "nothing to read", checkpoint.id, head)
        said = f"the next load reads {_counted(len(new))}"
        return CheckpointState("in lineage", said, checkpoint.id, head)

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Do nothing: listings are the pipeline's own."""

    def has_lost(self, window: InstantRange) -> bool:
        """Return whether one of its two listings is gone; a damaged one is told first."""
        with contextlib.suppress(StateFileDamaged):
            try:
                for instant in filter(None, (window.start_exclusive, window.end_inclusive)):
                    self._listing(instant)
            except StateFileLost:
                return True
        return False

    def missing(self, checkpoint: Instant, start: Instant | None) -> Iterator[TerminalError]:
        """Name the listings of the two that are not there as written."""
        for read, instant in ((self._known, checkpoint), (self._left_out, start)):
            try:
                if instant is not None:
                    read(instant)
            except (StateFileLost, StateFileDamaged) as missed:
                yield missed

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """Return the pinned listing, unless it is the checkpoint's: no window ends at another one.

        What was looked at in between may have been seen incomplete, or half written, or after
        another checkpoint; the pinned one was made for the window (PC-R07).

        Raises:
            StateFileLost, StateFileDamaged: the checkpoint's listing is not there as written.
            SourceRewritten: a file taken in before changed or vanished, and the pipeline says to
                fail.
        """
        if after is not None:
            self._store.head(after, self._root)
        if pin.head is None or (after is not None and not self._follows(pin.head, after)):
            return ()
        self._compared(after, pin.head)
        return (pin.head,)

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """List all listings up to the pinned one, also those that no window ended at."""
        return tuple(self._up_to_head(pin))

    def history(self, pin: Pin, before: Instant, interval: DataInterval) -> tuple[Instant, ...]:
        """Cut the first window's start into the moments at which its files came.

        Other files that were seen before it are not left out by `source.start`: a later window
        takes them in. An interval that begins after all of them can do without the listing.

        Raises:
            StateFileLost: the listing of the start is gone.
        """
        del pin
        if interval.start > before.time:
            return ()
        return cuts(self._left_out(before), self._store.head(before, self._root).instant)

    def check_history(self, pin: Pin, before: Instant, interval: DataInterval) -> None:
        """Compare the files that came in an interval with those that stand.

        Raises:
            HistoryChanged: one of them changed or vanished since.
        """
        whole = self._store.head(before, self._root).instant
        listing = self._listing(before)
        standing = {file.path: file for file in self._head(pin).files}
        for file in listing.files:
            found = standing.get(file.path)
            if found != file and interval.covers(came(file, whole)):
                raise HistoryChanged(
                    source=self._root,
                    path=file.path,
                    interval=str(interval),
                    expected=str(file),
                    found=str(found) if found else "no file",
                )

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return how many files each listing brought and lost against the one before it."""
        known = self._up_to_head(pin)
        reports = []
        for instant in instants:
            earlier = [item for item in known if number_of(item) < number_of(instant)]
            change = self._difference(earlier[-1] if earlier else None, instant)
            gone = sum(found is None for _, found in change.disturbed)
            changed = len(change.disturbed) - gone
            reports.append(
                InstantReport(
                    instant=instant,
                    operation="listing",
                    files_added=len(change.added),
                    files_removed=gone,
                    rows_added=None,
                    rows_removed=None,
                    summary={"changed-files": str(changed)} if changed else {},
                )
            )
        return reports

    def volumes(
        self, pin: Pin, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        """Return None: a listing is taken by the run that reads it, so there is none to leave."""
        del pin, after, instants
        return None

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return nothing: a directory has no properties."""
        del pin
        return {}

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Return None: what the footer says was read with the piece."""
        del piece, column
        return None

    def units(
        self,
        pin: Pin,
        window: InstantRange,
        *,
        whole: bool = False,
        event_time: EventColumn | None = None,
        enough: int | None = None,
    ) -> Units:
        """List the files that came between two listings, with their rows from the footers.

        Raises:
            SourceRewritten: a file taken in before changed or vanished, and the pipeline says to
                fail.
            ListedFileGone, SourceFileDamaged: a file is not as it was listed.
            SchemaIncompatible: a column of a file cannot be read as the type that was pinned.
        """
        del enough
        whole = whole or self._reads_whole
        start = None if whole else window.start_exclusive
        change = self._compared(start, window.end_inclusive)
        partitions = {file.path: self._partition(file.path) for file in change.added}
        pruning = PartitionPruning(self._config, self.schema(pin))
        kept_partitions = pruning.keep(set(partitions.values()))
        files = [file for file in change.added if partitions[file.path] in kept_partitions]
        checked = _Checked(self.reader(pin), event_time)
        pieces = [piece for piece in self._pieces(files, partitions, checked) if piece.rows > 0]
        pruned = len(change.added) - len(files)
        return Units(tuple(pieces), self._notes(window, change, pruned, whole=whole))

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a file."""
        with open_slice(piece.slice) as file:
            return file.row_groups

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.reader(pin).schema

    def settling(self, pin: Pin) -> None:
        """Files are only ever added: there is nothing to settle."""
        del pin

    def reader(self, pin: Pin) -> FilesReader:
        """Return the reading side."""
        return FilesReader(pin, self._config.partition_by, self._config.default_partition_name)

    def _up_to_head(self, pin: Pin) -> list[Instant]:
        if pin.head is None:
            return []
        end = number_of(pin.head)
        return [head.instant for head in self._store.heads() if head.number <= end]

    def _moments(self, pin: Pin) -> tuple[Instant, ...]:
        return cuts(self._listing(pin.head), pin.head) if pin.head is not None else ()

    def _head(self, pin: Pin) -> Listing:
        return self._listing(pin.head) if pin.head is not None else Listing(())

    def _known(self, after: Instant | None) -> Listing:
        """Read what the checkpoint knows; what is read whole can do without.

        Of a file that was only looked at nothing was taken in, so it is still new when it is back.
        """
        try:
            return self._listing(after) if after is not None else Listing(())
        except StateFileLost:
            if not self._reads_whole:
                raise
            return Listing(())

    def _listing(self, instant: Instant) -> Listing:
        head = self._store.head(instant, self._root)
        return cut(self._store.listing(head), head.instant, instant)

    def _left_out(self, start: Instant) -> Listing:
        """Read what `source.start` left out."""
        try:
            return self._listing(start)
        except StateFileLost as lost:
            # Reading everything once takes in nothing of it as history.
            raise StateFileLost(path=lost.path, remedy=_NO_HISTORY) from lost

    def _follows(self, head: Instant, after: Instant) -> bool:
        """Return whether a listing was made after a checkpoint and tells of something else."""
        return number_of(head) >= number_of(after) and not self._is_same(head, after)

    def _is_same(self, one: Instant, other: Instant) -> bool:
        """Return whether two instants stand for the same files, whatever their numbers."""
        first, second = self._listing(one), self._listing(other)
        return (first.files, first.gone) == (second.files, second.gone)

    def _difference(self, start: Instant | None, end: Instant) -> ListingDifference:
        return difference(self._listing(start) if start else None, self._listing(end))

    def _compared(self, start: Instant | None, end: Instant) -> ListingDifference:
        """Compare two listings and refuse changed files, before anything is read or advanced."""
        change = self._difference(start, end)
        self._refuse_disturbed(change)
        return change

    def _refuse_disturbed(self, change: ListingDifference) -> None:
        if change.disturbed and self._refuses_changes:
            file, found = change.disturbed[0]
            raise SourceRewritten(
                source=self._root,
                path=file.path,
                expected=str(file),
                found=str(found) if found else "no file",
            )

    @property
    def _refuses_changes(self) -> bool:
        return self._config.on_changed_file == "fail"

    @property
    def _reads_whole(self) -> bool:
        return self._config.read.mode == "snapshot"

    def _is_kept(self, head: Instant, after: Instant) -> bool:
        """Return whether a listing tells of what the checkpoint's does, and that one stands.

        Reading everything anew is the way out where it does not.
        """
        try:
            return self._is_same(head, after)
        except (StateFileLost, StateFileDamaged):
            return False

    def _columns(self, listing: Listing, before: Listing, after: Instant | None) -> FolderColumns:
        """Add the columns of what the checkpoint does not know to those that it knows (PC-R02)."""
        known = listing_id(after) if after is not None else None
        head = next((item for item in self._store.heads() if item.instant.id == known), None)
        if head is None:
            return read_columns(self._root, listing.files, pa.schema([]))
        new = [file for file in listing.files if before.known.get(file.path) != file]
        completed = self._completed(head, listing.files)
        return read_columns(self._root, new, completed.schema)

    def _completed(self, head: ListingHead, files: Sequence[ListedFile]) -> FolderColumns:
        """Read what could not be read when a listing was made, and files of one without columns."""
        if head.columns is None:
            return read_columns(self._root, files, pa.schema([]))
        unread = [file for file in files if file.path in (head.unread or ())]
        return read_columns(self._root, unread, decode_schema(head.columns))

    def _chosen(self, columns: FolderColumns) -> pa.Schema:
        whole = table_schema(columns.schema, self._config.partition_by)
        try:
            return select_columns(whole, self._config.read.columns, self._extra_columns, self._root)
        except ColumnMissing as missing:
            # It may be a column of the file that cannot be read.
            raise next(iter(columns.unread.values()), missing) from None

    def _partition(self, path: str) -> Partition:
        names = tuple(self._config.partition_by)
        if not names:
            return Partition(())
        folder = path.rpartition("/")[0]
        found = Partition.parse(folder, names, self._config.default_partition_name)
        for _, value in found.values:
            if value in _NULL_NAMES and value != self._config.default_partition_name:
                raise DefaultPartitionForeign(path=folder, value=value)
        return found

    def _pieces(
        self, files: Sequence[ListedFile], partitions: dict[str, Partition], checked: _Checked
    ) -> Iterable[Piece]:
        return side_by_side(files, lambda file: self._piece(file, partitions[file.path], checked))

    def _piece(self, file: ListedFile, partition: Partition, checked: _Checked) -> Piece:
        path = f"{self._root}/{file.path}"
        with open_listed(path, file.size, file.modified) as opened:
            rows, groups, schema = opened.rows, len(opened.row_groups), opened.schema
            bounds = checked.bounds(opened)
        slice = FileSlice(
            path,
            file_bytes=file.size,
            rows=rows,
            # One offset says one row group, which need not be read again to be cut.
            offsets=(0,) if groups == 1 else (),
            details={MODIFIED: file.modified, PARTITION: dict(partition.values)},
        )
        piece = Piece(slice, rows, file.size, event_times=bounds)
        checked.check(piece, schema)
        return piece

    def _notes(
        self, window: InstantRange, change: ListingDifference, pruned: int, *, whole: bool
    ) -> tuple[str, ...]:
        skipped = self._store.head(window.end_inclusive, self._root).skipped
        gone = self._listing(window.end_inclusive).gone if whole else ()
        notes = []
        if gone:
            notes.append(
                f"did not read {_counted(len(gone))} that came earlier and are gone: "
                f"{gone[0].path}, …; what is read whole is left without their rows"
            )
        if change.disturbed:
            notes.append(f"ignored {len(change.disturbed)} changed or vanished files")
        if change.returned:
            notes.append(
                f"did not read {len(change.returned)} files again that came back as they were: "
                f"{change.returned[0].path}, …; rebuild partitions that were rebuilt without them"
            )
        if pruned:
            notes.append(f"the filter ruled out {pruned} files by partition")
        if skipped:
            notes.append(f"skipped {len(skipped)} paths that are no partitions: {skipped[0]}, …")
        return tuple(notes)


def _counted(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"
