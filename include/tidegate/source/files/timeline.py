"""The instants of a directory: its listings, one for each look that found a change."""

from __future__ import annotations

import functools
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import (
    ColumnMissing,
    FileCameBack,
    InstantNotFound,
    SourceChanged,
    SourceEmptied,
    StateFileLost,
)
from tidegate.model.plan import Pin, WindowKind
from tidegate.model.report import CheckpointState
from tidegate.source.columns import select_columns
from tidegate.source.files.columns import table_schema
from tidegate.source.files.footers import FolderColumns
from tidegate.source.files.listing import (
    ListedFile,
    Listing,
    ListingHead,
    came_before,
    cuts,
    listing_id,
    listing_time,
    number_of,
)
from tidegate.source.files.starts import before_time, first_checkpoint
from tidegate.source.named_columns import decode_schema, encode_schema
from tidegate.source.reading import pinned_columns
from tidegate.source.timeline import Following, InstantReport
from tidegate.source.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.model.instant import DataInterval, Instant
    from tidegate.source.files.folder import Folder

_INSTANT = timedelta(microseconds=1)


class ListingTimeline:
    """The `Timeline` of one directory.

    *Runs on:* the planner. *Called:* `pin` at each look, which writes a listing if something
    changed; the rest only reads. *Failure:* see `ListingStore`; safe to repeat.
    """

    def __init__(self, folder: Folder, extra_columns: Sequence[str]) -> None:
        """Prepare.

        Args:
            folder: the directory.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
        """
        self._folder = folder
        self._extra_columns = tuple(extra_columns)

    def pin(
        self,
        now: datetime,
        expected_identity: str | None = None,
        until: datetime | None = None,
        after: Instant | None = None,
    ) -> Pin:
        """List the directory; a listing that differs from the last one becomes an instant.

        Its time is that of its newest new file: a file belongs to the interval in which it arrived,
        whenever it is listed. The identity is the root that the pipeline file names, so there is
        nothing to compare. Files of the checkpoint's listing that are gone are remembered, so that
        they are not new when they come back.

        Raises:
            StateFileLost, StateFileDamaged: the checkpoint's listing is not there as written.
        """
        del expected_identity
        before = self._folder.known(after)
        # A partition is there when its marker is, whenever its files were written.
        marked = until if self._folder.config.require_marker else None
        listing = self._folder.look(before, marked if not self._folder.reads_whole else None)
        # A read of the whole directory is new each time, and always has all files.
        passed = Listing(()) if self._folder.reads_whole else before
        if until is not None and marked is None and not self._folder.reads_whole:
            listing = came_before(listing, until, before.known)
        listing = listing.remembering(passed)
        if not listing.files and after is None:
            schema = self._chosen(FolderColumns(pa.schema([])))
            return Pin(self._folder.root, None, (), {"schema": encode_schema(schema)})
        # A read of the whole directory belongs to the interval that it is read for.
        latest = until - _INSTANT if until is not None and self._folder.reads_whole else None
        moment = listing_time(listing, passed.known, min(now, latest or now), after)
        columns = functools.cache(lambda: self._columns(listing, before, after))
        head = self._folder.store.record(listing, moment, columns, latest=latest)
        schema = self._chosen(self._completed(head, listing.files))
        details = {"schema": encode_schema(schema)}
        return Pin(self._folder.root, head.instant, pinned_columns(schema), details)

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Pin an earlier listing; the schema stays."""
        self._folder.store.head(instant, self._folder.root)
        return replace(pin, head=instant)

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Pin the listing of a checkpoint, to read all of its files.

        If they are not as they were, they are listed anew, without files that were not taken in:
        what is left of them is read, as it stands. The next load of a read of everything reads what
        changed anyway.

        Raises:
            SourceEmptied: there is no file any more, and the pipeline says `fail`.
            FileCameBack: everything is read by each load, and a file that is gone in the listing is
                back.
        """
        if not self._folder.reads_whole:
            return self._standing_at(pin, checkpoint)
        standing = {file.path for file in self._folder.head(pin).files}
        for file in self._folder.listing(checkpoint).gone:
            if file.path in standing:
                raise FileCameBack(source=self._folder.root, path=file.path)
        return self.at(pin, checkpoint)

    def named(self, pin: Pin, text: str) -> Instant | None:
        """Find a listing by its id or number."""
        known = self._folder.up_to_head(pin)
        return next((it for it in known if text in {it.id, str(number_of(it))}), None)

    def as_of(self, pin: Pin, moment: datetime) -> Instant | None:
        """Return the files of the pinned listing that had arrived by a time."""
        earlier = before_time(self._folder.moments(pin), moment, inclusive=True)
        return earlier[-1] if earlier else None

    def _standing_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Pin the files of a checkpoint as they stand, which may be the checkpoint itself."""
        taken = self._folder.listing(checkpoint)
        standing = self._folder.look_at(taken)
        if standing.has_content_of(taken):
            return self.at(pin, checkpoint)
        # A folder with other files or with a marker is there: what was taken in was replaced.
        if not self._folder.head(pin).files and not standing.is_marked:
            self._refuse_emptied(taken, standing)
        head = self._folder.store.record(
            standing,
            checkpoint.time,
            lambda: self._columns(standing, taken, checkpoint),
            latest=None,
        )
        return replace(pin, head=head.instant)

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """Return the instant before `source.start`: a listing, or the files up to a time.

        Returns None to read the whole directory.
        """
        known = self._folder.up_to_head(pin)
        return first_checkpoint(
            known, lambda: self._folder.moments(pin), self._folder.config.start, self._folder.root
        )

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """Return the pinned listing, to load its changes or, in mode `snapshot`, the whole of it.

        In mode `snapshot` it is compared with no other listing, so that this mode also works if
        listings were lost.

        Raises:
            SourceRewritten, MarkedFilesReplaced: as `instants`.
            SourceEmptied: the whole directory is read but has no file any more, and the pipeline
                says `fail`.
        """
        if not self._folder.reads_whole:
            return Following(self.instants(pin, after), after)
        self._refuse_emptied(self._folder.known(after), self._folder.head(pin))
        is_known = pin.head is None or (after is not None and self._folder.is_kept(pin.head, after))
        found = () if is_known or pin.head is None else (pin.head,)
        return Following(found, None, WindowKind.RELOAD)

    def restarting(self, pin: Pin) -> Following:
        """Return the pinned listing, to load what it has since `source.start`."""
        if pin.head is None:
            return Following((), None)
        start = None if self._folder.reads_whole else self.first_checkpoint(pin)
        kind = WindowKind.RELOAD if start is None else WindowKind.RESTART
        return Following((pin.head,), start, kind)

    def _refuse_emptied(self, before: Listing, now: Listing) -> None:
        """Refuse a folder without files that had some, as one that is not mounted."""
        if before.files and not now.files and self._folder.refuses_changes:
            raise SourceEmptied(source=self._folder.root, files=len(before.files))

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """Return how many files arrived after a checkpoint, or what rules that out."""
        head = pin.head.id if pin.head else None
        if self._folder.reads_whole:
            if pin.head is None or self._folder.is_kept(pin.head, checkpoint):
                return CheckpointState("caught up", "nothing to read", checkpoint.id, head)
            files = counted(len(self._folder.head(pin).files))
            return CheckpointState(
                "in lineage", f"the next load reads all {files}", checkpoint.id, head
            )
        try:
            new = [
                file
                for instant in self.instants(pin, checkpoint)
                for file in self._folder.difference(checkpoint, instant).added
            ]
        except (InstantNotFound, SourceChanged, StateFileLost) as refused:
            return CheckpointState("unknown", str(refused), checkpoint.id, head)
        if not new:
            return CheckpointState("caught up", "nothing to read", checkpoint.id, head)
        said = f"the next load reads {counted(len(new))}"
        return CheckpointState("in lineage", said, checkpoint.id, head)

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """Return the pinned listing, unless it is the checkpoint's; windows end at no other one.

        Listings in between may have been incomplete, may have files that were half written, or may
        belong to another checkpoint; the pinned one was made for the window (PC-R07).

        Raises:
            StateFileLost, StateFileDamaged: the checkpoint's listing is not there as written.
            SourceRewritten: a file that was taken in has changed or vanished, and the pipeline says
                `fail`.
            MarkedFilesReplaced: a marker lists files with rows that were taken in, among others.
        """
        if after is not None:
            self._folder.store.head(after, self._folder.root)
        if pin.head is None or (after is not None and not self._folder.follows(pin.head, after)):
            return ()
        self._folder.compared(after, pin.head)
        return (pin.head,)

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """Return all listings up to the pinned one, including those that no window ended at."""
        return tuple(self._folder.up_to_head(pin))

    def history(self, pin: Pin, before: Instant, interval: DataInterval) -> tuple[Instant, ...]:
        """Split the first window's start into the times at which its files arrived.

        Other files that were seen before it are not excluded by `source.start`: a later window
        takes them in. An interval that begins after all of them does not need the listing.

        Raises:
            StateFileLost: the listing of the start is gone.
        """
        del pin
        if interval.start > before.time:
            return ()
        return cuts(
            self._folder.left_out(before),
            self._folder.store.head(before, self._folder.root).instant,
        )

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return how many files each listing gained and lost, compared with the one before it."""
        known = self._folder.up_to_head(pin)
        reports = []
        for instant in instants:
            earlier = [item for item in known if number_of(item) < number_of(instant)]
            change = self._folder.difference(earlier[-1] if earlier else None, instant)
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
                    files_changed=changed or None,
                )
            )
        return reports

    def _columns(self, listing: Listing, before: Listing, after: Instant | None) -> FolderColumns:
        """Add the columns of files that the checkpoint does not know to the known ones (PC-R02)."""
        known = listing_id(after) if after is not None else None
        head = next((item for item in self._folder.store.heads() if item.instant.id == known), None)
        if head is None:
            return self._folder.footers.columns(listing.files, pa.schema([]))
        taken = before.known
        new = [
            file
            for file in listing.files
            if file.path not in taken or not taken[file.path].is_same(file)
        ]
        completed = self._completed(head, listing.files)
        found = self._folder.footers.columns(new, completed.schema)
        return replace(found, unread={**completed.unread, **found.unread})

    def _completed(self, head: ListingHead, files: Sequence[ListedFile]) -> FolderColumns:
        """Read the files whose columns are unknown because they could not be read when listed."""
        if head.columns is None:
            return self._folder.footers.columns(files, pa.schema([]))
        unread = [file for file in files if file.path in (head.unread or ())]
        return self._folder.footers.columns(unread, decode_schema(head.columns))

    def _chosen(self, columns: FolderColumns) -> pa.Schema:
        if columns.unread and not columns.schema.names:
            # None of the files can be read: there are no columns to go on with.
            raise next(iter(columns.unread.values()))
        config = self._folder.config
        whole = table_schema(columns.schema, config.partition_by, config.named_metadata)
        try:
            return select_columns(
                whole, config.read.columns, self._extra_columns, self._folder.root
            )
        except ColumnMissing as missing:
            # The column may be one of the file that cannot be read.
            raise next(iter(columns.unread.values()), missing) from None
