"""A directory of files, by its listings and their differences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    MarkedFilesReplaced,
    SourceRewritten,
    StateFileDamaged,
    StateFileLost,
)
from tidegate.source.files.footers import Footers
from tidegate.source.files.formats import format_of
from tidegate.source.files.listing import Listing, cut, cuts, difference, number_of
from tidegate.source.files.looks import looked_at
from tidegate.source.files.revision_folders import ListedFiles
from tidegate.source.files.store import ListingStore
from tidegate.source.files.tails import listed_before
from tidegate.source.files.walk import list_directory
from tidegate.source.words import counted, first_few

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.config import FilesSourceConfig
    from tidegate.model.instant import Instant
    from tidegate.model.plan import Pin
    from tidegate.source.files.listing import ListingDifference
    from tidegate.storage import Storage

_READ_WHOLE = (
    "read the whole directory once: set `read.mode: snapshot` below `source`, run `tidegate load "
    "PIPELINE`, and remove it again"
)
_READ_WHOLE_FROM_THE_START = (
    "read the whole directory once: set `read.mode: snapshot` below `source` and remove "
    "`source.start`, run `tidegate load PIPELINE`, and change both back; files from before the "
    "start are then published as well, so that they need no backfill"
)
_NO_HISTORY = (
    "leave the interval out: files from before the first window cannot be backfilled without the "
    "listing of the start"
)

_REBUILD = (
    "`tidegate rebuild PIPELINE PARTITION` for the partitions of their rows, which says which ones "
    "it leaves out"
)


class Folder:
    """The state that the parts of a source share."""

    def __init__(
        self, config: FilesSourceConfig, storage: Storage, listings_root: str | None
    ) -> None:
        """Prepare, without listing anything yet.

        Args:
            config: the pipeline's `source`.
            storage: of the files, and where listings are kept.
            listings_root: their directory; None keeps them in memory.
        """
        self.config = config
        self.root = str(config.path).rstrip("/")
        # A start and a read of everything exclude each other.
        remedy = _READ_WHOLE if config.start.kind == "full" else _READ_WHOLE_FROM_THE_START
        self.store = ListingStore(storage, listings_root, remedy)
        self.format = format_of(config)
        self.files = ListedFiles(storage)
        self.footers = Footers(self.root, self.files, self.format)

    @property
    def reads_whole(self) -> bool:
        """Whether every load reads all files."""
        return self.config.read.mode == "snapshot"

    @property
    def refuses_changes(self) -> bool:
        """Whether a file that changed or vanished stops a load."""
        return self.config.on_changed_file == "fail"

    def up_to_head(self, pin: Pin) -> list[Instant]:
        """Return the instants up to the pinned one."""
        if pin.head is None:
            return []
        end = number_of(pin.head)
        return [head.instant for head in self.store.heads() if head.number <= end]

    def moments(self, pin: Pin) -> tuple[Instant, ...]:
        """Return the times at which the files of the pinned listing arrived."""
        return cuts(self.listing(pin.head), pin.head) if pin.head is not None else ()

    def head(self, pin: Pin) -> Listing:
        """Read the pinned listing; empty before the first."""
        return self.listing(pin.head) if pin.head is not None else Listing(())

    def look(self, before: Listing, until: datetime | None = None) -> Listing:
        """List the directory, with the ends of files that are new or whose time or tag changed.

        Args:
            before: the listing of the checkpoint.
            until: markers that were written at this time or later do not count yet.
        """
        found = list_directory(self.config, self.files.storage, until)
        taken, newest = before.known, self.store.newest().known
        earlier = [listed_before(file, taken, newest) for file in found.files]
        fresh = [file for file, one in zip(found.files, earlier, strict=True) if one is None]
        read = looked_at(self.root, fresh, self.footers.with_tail)
        looked = replace(found, files=tuple(one or next(read) for one in earlier))
        return looked.keeping(before)

    def look_at(self, taken: Listing) -> Listing:
        """List the files of a listing as they stand now, with the ends of all of them.

        They are read next, so that one whose time was kept is not trusted. What is new is left out,
        unless it came in the place of one of them.
        """
        found = list_directory(self.config, self.files.storage)
        new = set(difference(taken, found).added)
        standing = [file for file in found.files if file not in new]
        files = looked_at(self.root, standing, self.footers.with_tail)
        return replace(found, files=tuple(files)).keeping(taken).remembering(taken)

    def listing(self, instant: Instant) -> Listing:
        """Read the listing of an instant; for a time within one, what had arrived by then."""
        head = self.store.head(instant, self.root)
        return cut(self.store.listing(head), head.instant, instant)

    def known(self, after: Instant | None) -> Listing:
        """Read the listing of the checkpoint, which a read of the whole directory does not need.

        A file that was only listed was not taken in, so it is still new when it is back.
        """
        try:
            return self.listing(after) if after is not None else Listing(())
        except StateFileLost:
            if not self.reads_whole:
                raise
            return Listing(())

    def left_out(self, start: Instant) -> Listing:
        """Read the listing of the files before `source.start`."""
        try:
            return self.listing(start)
        except StateFileLost as lost:
            # A read of the whole directory takes in no history.
            raise StateFileLost(path=lost.path, remedy=_NO_HISTORY) from lost

    def is_same(self, one: Instant, other: Instant) -> bool:
        """Return whether two instants have the same files, whatever their numbers."""
        return self.listing(one).has_content_of(self.listing(other))

    def follows(self, head: Instant, after: Instant) -> bool:
        """Return whether a listing was made after a checkpoint and differs from it."""
        return number_of(head) >= number_of(after) and not self.is_same(head, after)

    def is_kept(self, head: Instant, after: Instant) -> bool:
        """Return whether a listing has the same files as the checkpoint's, which must exist.

        If it does not exist, reading everything again is the way out.
        """
        try:
            return self.is_same(head, after)
        except (StateFileLost, StateFileDamaged):
            return False

    def difference(self, start: Instant | None, end: Instant) -> ListingDifference:
        """Compare two listings, of which the first may be None."""
        return difference(self.listing(start) if start else None, self.listing(end))

    def compared(self, start: Instant | None, end: Instant) -> ListingDifference:
        """Compare two listings and refuse changed files, before anything is read or advanced."""
        change = self.difference(start, end)
        self._refuse_replacing(change)
        self._refuse_disturbed(change)
        return change

    def _refuse_replacing(self, change: ListingDifference) -> None:
        found = change.replacing
        if self.refuses_changes:
            # A rebuild took their rows out when they were gone. Others may have the names of old.
            found += tuple(file for file in change.returned if file.made_of is not None)
        if found:
            first, *others = found
            raise MarkedFilesReplaced(
                source=self.root,
                path=first.path,
                others=tuple(file.path for file in others),
                files=first_few([file.path for file in found]),
                replaced=first_few(sorted(change.replaced or change.aliases)),
                remedy=_REBUILD,
            )

    def _refuse_disturbed(self, change: ListingDifference) -> None:
        if change.disturbed and self.refuses_changes:
            (file, found), *others = change.disturbed
            now = str(found) if found else "no file"
            if others:
                names = [
                    f"{other.path} ({'changed' if there else 'gone'})" for other, there in others
                ]
                now += f", and {counted(len(others))} more changed: {first_few(names)}"
            raise SourceRewritten(
                source=self.root,
                path=file.path,
                others=tuple(other.path for other, _ in others),
                expected=str(file),
                found=now,
                remedy=_REBUILD,
            )
