"""One directory of Parquet files as a source: pins a listing, plans differences of two."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import (
    FileCameBack,
    HistoryChanged,
    InstantNotFound,
    SourceEmptied,
    SourceRewritten,
    StateFileLost,
)
from tidegate.model.instant import aware_time
from tidegate.model.partition import Partition
from tidegate.model.plan import Piece, Pin, WindowKind
from tidegate.model.report import CheckpointState
from tidegate.source.columns import select_columns
from tidegate.source.files.format import (
    FilesFormat,
    encode_schema,
    open_listed,
    table_schema,
)
from tidegate.source.files.listing import (
    ListedFile,
    Listing,
    ListingDifference,
    came,
    came_before,
    cut,
    cuts,
    difference,
    listing_time,
    number_of,
)
from tidegate.source.files.pruning import PartitionPruning
from tidegate.source.files.starts import before_time, first_checkpoint
from tidegate.source.files.store import ListingStore
from tidegate.source.files.walk import list_directory
from tidegate.source.protocol import Following, InstantReport, Units, pinned_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import SourceConfig
    from tidegate.model.instant import DataInterval, Instant, InstantRange
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.physical import RowGroup
    from tidegate.source.protocol import EventColumn, Volume
    from tidegate.storage import Storage

_THREADS = 2
_FILES_PER_CALL = 64


class _Checked:
    """Checks the schemas of files before a window is planned on them; equal ones once."""

    def __init__(self, reading: FilesFormat) -> None:
        self._reading = reading
        self._known: set[pa.Schema] = set()

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
        config: SourceConfig,
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
        self._store = ListingStore(storage, listings_root)
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
        if until is not None:
            listing = came_before(listing, until, before.known)
        # What is read whole is new each time.
        passed = Listing(()) if self._reads_whole else before
        listing = listing.remembering(passed)
        head = None
        if listing.files or after is not None:
            moment = listing_time(listing, passed.known, now, after)
            head = self._store.record(listing, moment).instant
        schema = self._schema_of(listing)
        columns = pinned_columns(schema) if head is not None else ()
        return Pin(self._root, head, columns, {"schema": encode_schema(schema)})

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
        found = (pin.head,) if pin.head is not None and pin.head != after else ()
        return Following(found, None, WindowKind.RELOAD)

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """Return how many files came after a checkpoint, or what stands against it."""
        head = pin.head.id if pin.head else None
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
        files = "1 file" if len(new) == 1 else f"{len(new)} files"
        return CheckpointState("in lineage", f"the next load reads {files}", checkpoint.id, head)

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Do nothing: listings are the pipeline's own."""

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
        takes them in.

        Raises:
            HistoryChanged: a file that came in the interval changed or vanished since.
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
        return cuts(listing, whole)

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
        """Return None: files have no order that would need the bounds."""
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
        del event_time, enough
        whole = whole or self._reads_whole
        start = None if whole else window.start_exclusive
        change = self._compared(start, window.end_inclusive)
        partitions = {file.path: self._partition(file.path) for file in change.added}
        pruning = PartitionPruning(self._config, self.schema(pin))
        kept_partitions = pruning.keep(set(partitions.values()))
        files = [file for file in change.added if partitions[file.path] in kept_partitions]
        checked = _Checked(self.format(pin))
        pieces = [piece for piece in self._pieces(files, partitions, checked) if piece.rows > 0]
        return Units(tuple(pieces), self._notes(window, change, len(change.added) - len(files)))

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a file."""
        with open_listed(piece.path, piece.details["length"], piece.details["modified"]) as file:
            return file.row_groups

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.format(pin).schema

    def settling(self, pin: Pin) -> None:
        """Files are only ever added: there is nothing to settle."""
        del pin

    def format(self, pin: Pin) -> FilesFormat:
        """Return the reading side."""
        return FilesFormat(pin, self._config.partition_by, self._config.default_partition_name)

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

    def _follows(self, head: Instant, after: Instant) -> bool:
        """Return whether a listing was made after a checkpoint and tells of something else."""
        one, other = self._listing(head), self._listing(after)
        is_same = (one.files, one.gone) == (other.files, other.gone)
        return number_of(head) >= number_of(after) and not is_same

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

    def _schema_of(self, listing: Listing) -> pa.Schema:
        """Take the columns of the first file by path: one that new files do not change (PC-R02)."""
        keys = self._config.partition_by
        if not listing.files:
            return table_schema(pa.schema([]), keys)
        first = listing.files[0]
        path = f"{self._root}/{first.path}"
        with open_listed(path, first.size, first.modified) as file:
            whole = table_schema(file.schema, keys)
        return select_columns(whole, self._config.read.columns, self._extra_columns, self._root)

    def _partition(self, path: str) -> Partition:
        names = tuple(self._config.partition_by)
        if not names:
            return Partition(())
        folder = path.rpartition("/")[0]
        return Partition.parse(folder, names, self._config.default_partition_name)

    def _pieces(
        self, files: Sequence[ListedFile], partitions: dict[str, Partition], checked: _Checked
    ) -> Iterable[Piece]:
        """Read footers side by side, many a call: handing over one costs more than reading it."""
        chunks = [files[at : at + _FILES_PER_CALL] for at in range(0, len(files), _FILES_PER_CALL)]
        with ThreadPoolExecutor(_THREADS) as pool:
            for pieces in pool.map(
                lambda chunk: [self._piece(file, partitions[file.path], checked) for file in chunk],
                chunks,
            ):
                yield from pieces

    def _piece(self, file: ListedFile, partition: Partition, checked: _Checked) -> Piece:
        path = f"{self._root}/{file.path}"
        with open_listed(path, file.size, file.modified) as opened:
            rows, groups, schema = opened.rows, len(opened.row_groups), opened.schema
        details = {
            "length": file.size,
            "modified": file.modified,
            "partition": dict(partition.values),
            # One offset says one row group, which need not be read again to be cut.
            "split_offsets": [0] if groups == 1 else [],
        }
        piece = Piece(path, rows, file.size, details=details)
        checked.check(piece, schema)
        return piece

    def _notes(
        self, window: InstantRange, change: ListingDifference, pruned: int
    ) -> tuple[str, ...]:
        skipped = self._store.head(window.end_inclusive, self._root).skipped
        notes = []
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
