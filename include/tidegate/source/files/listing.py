"""What stood in a directory at one moment, and what changed between two such moments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tidegate.model.instant import Instant
from tidegate.model.wire import Value, digest

if TYPE_CHECKING:
    from collections.abc import Iterator


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    @property
    def instant(self) -> Instant:
        """The listing as an instant of the source."""
        return Instant(f"{self.number:06d}-{self.digest}", self.taken_at)


@dataclass(frozen=True)
class Listing:
    """All files at one moment, sorted by path."""

    files: tuple[ListedFile, ...]
    skipped: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """16 hexadecimal digits over the files."""
        return digest([list(file) for file in self.files])

    def head(self, number: int, taken_at: datetime) -> ListingHead:
        """Number the listing."""
        return ListingHead(number, self.digest, taken_at, len(self.files), self.skipped)


@dataclass(frozen=True)
class Difference:
    """What came between two listings."""

    added: tuple[ListedFile, ...]
    disturbed: tuple[tuple[ListedFile, ListedFile | None], ...]
    """Known files and what they are now: of another size or time, or None for gone (PC-R07)."""


def came_before(listing: Listing, until: datetime, known: Listing) -> Listing:
    """Leave out files that came at or after a moment, but none that was listed before."""
    bound = until.timestamp() * 1e9
    listed = {file.path for file in known.files}
    kept = tuple(file for file in listing.files if file.modified < bound or file.path in listed)
    return Listing(kept, listing.skipped)


def listing_time(listing: Listing, now: datetime, last: ListingHead | None) -> datetime:
    """Give a listing the time of its youngest file, not beyond the clock or before the last one.

    Args:
        listing: what stands in the directory.
        now: the clock of the look; files from the future count as of now.
        last: the listing before.
    """
    youngest = max((file.modified for file in listing.files), default=0)
    # Floor division: a time after the file's own would put it into the next interval.
    moment = min(_EPOCH + timedelta(microseconds=youngest // 1000), now)
    return max(moment, last.taken_at) if last else moment


def number_of(instant: Instant) -> int:
    """Give the number of a listing from its instant."""
    return int(instant.id.partition("-")[0])


def difference(before: Listing | None, after: Listing) -> Difference:
    """Compare two listings by path; without a first one everything is new."""
    known = {file.path: file for file in before.files} if before else {}
    now = {file.path: file for file in after.files}
    added = tuple(file for file in after.files if file.path not in known)
    return Difference(added, tuple(_disturbed(known, now)))


def _disturbed(
    known: dict[str, ListedFile], now: dict[str, ListedFile]
) -> Iterator[tuple[ListedFile, ListedFile | None]]:
    for path, file in known.items():
        found = now.get(path)
        if found != file:
            yield file, found
