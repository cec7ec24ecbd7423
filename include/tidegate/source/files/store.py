"""Keep listings: heads by number, files by digest, both written once (design §2)."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import InstantNotFound, StateFileDamaged, StateFileLost
from tidegate.source.files.listing import Listing, ListingHead, listing_id
from tidegate.source.named_columns import encode_schema
from tidegate.stored import as_stored, read_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tidegate.model.instant import Instant
    from tidegate.source.files.footers import FolderColumns
    from tidegate.storage import Storage

_HEAD_NAME = re.compile(r"(\d{6,})\.json")
_LOOK_AGAIN = "load with `tidegate load PIPELINE`"

_Said = TypeVar("_Said")


class ListingStore:
    """The listings of one source, in a directory or, without one, in memory.

    *Runs on:* the planner. *Called:* at each look at the source. *Failure:* the files of a listing
    are written before its head; a crash in between leaves files that no head names, and the next
    look writes the same ones under the same name. If two processes look at once, they get the same
    number: the first head counts, and the second process uses it or gives its own listing the next
    number. The result of `record` survives a power cut, whatever process wrote it.
    """

    def __init__(self, storage: Storage, root: str | None, remedy: str = "") -> None:
        """Prepare, without reading anything yet.

        Args:
            storage: where listings are kept.
            root: their directory; None keeps them in memory.
            remedy: the remedy if one is lost, as the error continues after "or".
        """
        self._storage = storage
        self._root = root
        self._remedy = remedy
        self._heads: dict[int, ListingHead] = {}
        self._listings: dict[str, Listing] = {}

    def heads(self) -> tuple[ListingHead, ...]:
        """Return all listings by number.

        Raises:
            StateFileDamaged: one is not as it was written.
        """
        if self._root is not None:
            for name in self._storage.list_files(self._root):
                match = _HEAD_NAME.fullmatch(name)
                if match and int(match.group(1)) not in self._heads:
                    path = f"{self._root}/{name}"
                    self._heads[int(match.group(1))] = self._stored(path, ListingHead.from_text)
        return tuple(self._heads[number] for number in sorted(self._heads))

    def head(self, instant: Instant, source: str) -> ListingHead:
        """Return the head of an instant's listing.

        Raises:
            StateFileLost: it is gone, or its number has another digest.
            InstantNotFound: the same, for listings in memory.
        """
        for head in self.heads():
            if head.instant.id == listing_id(instant):
                return head
        if self._root is None:
            raise InstantNotFound(source=source, instant=instant.id)
        raise StateFileLost(path=f"{self._root}, listing {instant.id}", remedy=self._remedy)

    def listing(self, head: ListingHead) -> Listing:
        """Read the files of a listing.

        Raises:
            StateFileLost: they were cleaned away.
            StateFileDamaged: they are not as they were written.
        """
        if head.digest not in self._listings:
            path = self._files_path(head.digest)
            self._listings[head.digest] = self._stored(path, lambda raw: _listing(raw, head))
        return self._listings[head.digest]

    def newest(self) -> Listing:
        """Read the last listing; empty if there is none, or if it is not as it was written.

        Only what a look would otherwise read again is taken from it.
        """
        with contextlib.suppress(StateFileLost, StateFileDamaged):
            for head in self.heads()[-1:]:
                return self.listing(head)
        return Listing(())

    def record(
        self,
        listing: Listing,
        moment: datetime,
        columns: Callable[[], FolderColumns],
        *,
        latest: datetime | None,
    ) -> ListingHead:
        """Number a listing, unless it is equal to the last one.

        Args:
            listing: the files of the directory.
            moment: its time.
            columns: reads the columns of its files; called only if the listing is new.
            latest: the last listing is not reused if its time is later, because it would not belong
                to the interval that is looked at; None: it may be reused at any time.
        """
        while True:
            heads = self.heads()
            last = heads[-1] if heads else None
            is_early = last is None or latest is None or last.taken_at <= max(moment, latest)
            if last and is_early and last.digest == listing.digest:
                # Its files may have been lost since; they are written again with the same content.
                self._write_files(listing)
                if self._root is not None:
                    # The process that numbered it may have died before the name was on the disk.
                    self._storage.sync(self._root)
                self._listings[listing.digest] = listing
                return last
            number = last.number + 1 if last else 1
            found = columns()
            head = replace(
                listing.head(number, moment),
                columns=encode_schema(found.schema),
                unread=tuple(found.unread) or None,
            )
            if self._write(head, listing):
                self._heads[head.number] = head
                self._listings[head.digest] = listing
                return head

    def _write(self, head: ListingHead, listing: Listing) -> bool:
        self._write_files(listing)
        path = f"{self._root}/{head.number:06d}.json"
        return self._root is None or self._storage.write_once(path, head.to_text().encode())

    def _write_files(self, listing: Listing) -> None:
        if self._root is not None:
            self._storage.write_once(self._files_path(listing.digest), _packed(listing))

    def _stored(self, path: str, decode: Callable[[bytes], _Said]) -> _Said:
        content = read_content(self._storage, path, lambda: self._remedy)
        return as_stored(path, lambda: decode(content), lambda: _LOOK_AGAIN)

    def _files_path(self, digest: str) -> str:
        return f"{self._root}/files/{digest}.json.gz"


def _packed(listing: Listing) -> Iterator[bytes]:
    """Compress the files on demand: most looks find them stored already."""
    text = json.dumps(listing.entries, separators=(",", ":"))
    # Compressed, because every change stores the whole list; without a time, so that equal lists
    # have equal bytes.
    yield gzip.compress(text.encode(), compresslevel=6, mtime=0)


def _listing(content: bytes, head: ListingHead) -> Listing:
    try:
        raw = json.loads(gzip.decompress(content))
    except (OSError, EOFError, zlib.error) as damaged:
        raise ValueError(str(damaged)) from damaged
    return Listing.of_entries(raw, head.skipped)
