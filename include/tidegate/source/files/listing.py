"""What stood in a directory at one moment, and what changed between two such moments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.model.instant import Instant
from tidegate.model.wire import SPARSE, Value, digest, instant_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NANOSECONDS = 1_000
"""In a microsecond."""
_GONE = "gone"
_CUT = "@"


class ListedFile(NamedTuple):
    """One file: path relative to the root, bytes, modification time in nanoseconds since 1970."""

    path: str
    size: int
    modified: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.modified / 1e9, tz=UTC)
        return f"{self.size} bytes of {moment:%Y-%m-%dT%H:%M:%S.%fZ}"


@dataclass(frozen=True)
class ListingHead(Value):
    """A listing without its files: small enough to read hundreds of them."""

    number: int
    """1 for the first listing, without gaps."""
    digest: str
    """Over the sorted path, size, modification-time list: equal listings are one instant."""
    taken_at: datetime
    """The instant's time, see `listing_time`."""
    files: int
    skipped: tuple[str, ...] = ()
    """Paths that `on_bad_path: skip` left out (PC-R03)."""
    columns: str | None = field(default=None, metadata={SPARSE: True})
    """Those of all files up to here that could be read, by `encode_schema` (PC-R02)."""
    unread: tuple[str, ...] | None = field(default=None, metadata={SPARSE: True})
    """Paths of the others, which are tried again; None: there were none."""

    @property
    def instant(self) -> Instant:
        """The listing as an instant of the source."""
        return Instant(f"{self.number:06d}-{self.digest}", self.taken_at)


@dataclass(frozen=True)
class Listing:
    """All files at one moment, sorted by path, and those that were taken in and are gone."""

    files: tuple[ListedFile, ...]
    skipped: tuple[str, ...] = ()
    gone: tuple[ListedFile, ...] = ()
    """As they were last seen, sorted by path: what comes back is not new (PC-R07)."""

    @property
    def entries(self) -> list[list[Any]]:
        """The files as they are stored, those that are gone with a fourth item."""
        return [*map(list, self.files), *([*file, _GONE] for file in self.gone)]

    @classmethod
    def of_entries(cls, entries: Iterable[list[Any]], skipped: tuple[str, ...]) -> Listing:
        """Return the listing that `entries` describes."""
        found: tuple[list[ListedFile], list[ListedFile]] = ([], [])
        for path, size, modified, *gone in entries:
            found[bool(gone)].append(ListedFile(path, size, modified))
        return cls(tuple(found[0]), skipped, tuple(found[1]))

    @property
    def digest(self) -> str:
        """16 hexadecimal digits over the files."""
        return digest(self.entries)

    @property
    def known(self) -> dict[str, ListedFile]:
        """All files by path, those that are gone too."""
        return {file.path: file for file in (*self.files, *self.gone)}

    def remembering(self, before: Listing) -> Listing:
        """Return the listing with what an earlier one knows and that does not stand here."""
        standing = {file.path for file in self.files}
        gone = (file for path, file in before.known.items() if path not in standing)
        return replace(self, gone=tuple(sorted(gone)))

    def head(self, number: int, taken_at: datetime) -> ListingHead:
        """Number the listing."""
        return ListingHead(number, self.digest, taken_at, len(self.files), self.skipped)


@dataclass(frozen=True)
class ListingDifference:
    """What came between two listings."""

    added: tuple[ListedFile, ...]
    disturbed: tuple[tuple[ListedFile, ListedFile | None], ...]
    """Known files and what they are now: of another size or time, or None for gone (PC-R07)."""
    returned: tuple[ListedFile, ...]
    """Files that were gone and are back as they were."""


def came_before(listing: Listing, until: datetime, known: Collection[str]) -> Listing:
    """Leave out files that came at or after a moment, but none whose path was known before."""
    # In whole numbers: a float of today's nanoseconds is off by up to two hundred of them.
    bound = (until - _EPOCH) // _MICROSECOND * _NANOSECONDS
    kept = tuple(file for file in listing.files if file.modified < bound or file.path in known)
    return Listing(kept, listing.skipped)


def listing_time(
    listing: Listing, known: Collection[str], now: datetime, after: Instant | None
) -> datetime:
    """Return the time of the youngest new file, not beyond the clock or before the checkpoint.

    Args:
        listing: what stands in the directory.
        known: paths that the checkpoint knows: one that was written anew ends no interval later.
        now: the clock of the look; files from the future count as of now.
        after: the checkpoint.
    """
    youngest = max((file.modified for file in listing.files if file.path not in known), default=0)
    moment = min(_moment(youngest), now)
    return max(moment, after.time) if after else moment


def cuts(listing: Listing, instant: Instant) -> tuple[Instant, ...]:
    """Return an instant for each moment at which files of a listing came, the earliest first.

    Each stands for the files that had come by then; files from the future count as of the
    listing's time.
    """
    moments = sorted({came(file, instant) for file in listing.files})
    return tuple(Instant(f"{instant.id}{_CUT}{instant_text(at)}", at) for at in moments)


def cut(listing: Listing, whole: Instant, instant: Instant) -> Listing:
    """Return what an instant of a listing stands for: the part that had come, or all of it.

    Args:
        listing: all of it.
        whole: the listing's own instant.
        instant: that one, or one of its `cuts`.
    """
    if _CUT not in instant.id:
        return listing
    kept = tuple(file for file in listing.files if came(file, whole) <= instant.time)
    return Listing(kept, listing.skipped)


def listing_id(instant: Instant) -> str:
    """Return the id of the listing that an instant is, or is a part of."""
    return instant.id.partition(_CUT)[0]


def number_of(instant: Instant) -> int:
    """Return the number of a listing from its instant."""
    return int(instant.id.partition("-")[0])


def difference(before: Listing | None, after: Listing) -> ListingDifference:
    """Compare two listings by path; without a first one everything is new."""
    before = before or Listing(())
    known = before.known
    added = tuple(file for file in after.files if file.path not in known)
    now = {file.path: file for file in after.files}
    returned = tuple(file for file in before.gone if now.get(file.path) == file)
    return ListingDifference(added, tuple(_disturbed(before, now)), returned)


def _disturbed(
    before: Listing, now: dict[str, ListedFile]
) -> Iterator[tuple[ListedFile, ListedFile | None]]:
    for file in before.files:
        found = now.get(file.path)
        if found != file:
            yield file, found
    for file in before.gone:
        found = now.get(file.path)
        if found not in {None, file}:
            yield file, found


def came(file: ListedFile, listed: Instant) -> datetime:
    """Return when a file came; one from the future did by the time of its listing."""
    return min(_moment(file.modified), listed.time)


def _moment(nanoseconds: int) -> datetime:
    # Floor division: a time after the file's own would put it into the next interval.
    return _EPOCH + timedelta(microseconds=nanoseconds // _NANOSECONDS)
