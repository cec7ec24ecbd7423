"""The files of a directory at one time, and the changes between two times."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.model.instant import Instant
from tidegate.model.wire import SPARSE, Value, digest, instant_text
from tidegate.storage import nanoseconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Self


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000
"""Nanoseconds per microsecond."""
_GONE = "gone"
_JOINED = "made_of"
_CUT = "@"


class ListedFile(NamedTuple):
    """One file: path relative to the root, bytes, modification time in nanoseconds since 1970."""

    path: str
    size: int
    modified: int
    tail: str = ""
    """Hash of the file's end, see `tails`; empty in listings of early versions, and if it could not
    be read."""
    tag: str = ""
    """Of an object, see `FileDetails`; empty on a disk."""
    made_of: tuple[str, ...] | None = None
    """Names of the files of its directory that were joined to it, as a marker says that lists it;
    None: none does (PC-R09)."""

    def is_same(self, other: ListedFile) -> bool:
        """Return whether a file is unchanged, by its content if that is known, else by its time.

        Another tag alone is no change: a copy of a large object has another one.
        """
        if self.size != other.size:
            return False
        if self.tail and other.tail:
            return self.tail == other.tail
        return self.stamp == other.stamp

    @property
    def stamp(self) -> tuple[int, int, str]:
        """What a look tells without reading: as long as it is the same, so is the file."""
        return (self.size, self.modified, self.tag)

    @property
    def parts(self) -> frozenset[str]:
        """Paths of the files that were joined to it."""
        folder = self.path[: self.path.rfind("/") + 1]
        return frozenset(folder + name for name in self.made_of or ())

    @property
    def folder(self) -> str:
        """Its directory; empty for the root."""
        return self.path.rpartition("/")[0]

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.modified / 1e9, tz=UTC)
        return f"{self.size} bytes of {moment:%Y-%m-%dT%H:%M:%S.%fZ}"


@dataclass(frozen=True)
class ListingHead(Value):
    """A listing without its files, so small that hundreds can be read."""

    number: int
    """1 for the first listing, without gaps."""
    digest: str
    """Hash of all that is known of the files: equal listings are one instant."""
    taken_at: datetime
    """The instant's time, see `listing_time`."""
    files: int
    skipped: tuple[str, ...] = ()
    """Paths that `on_bad_path: skip` left out (PC-R03)."""
    columns: str | None = field(default=None, metadata={SPARSE: True})
    """The columns of all files so far that could be read, by `encode_schema` (PC-R02)."""
    unread: tuple[str, ...] | None = field(default=None, metadata={SPARSE: True})
    """Paths of the other files, which are tried again; None if there are none."""

    @property
    def instant(self) -> Instant:
        """The listing as an instant of the source."""
        return Instant(f"{self.number:06d}-{self.digest}", self.taken_at)


@dataclass(frozen=True)
class Listing:
    """All files at one time, sorted by path, and those that were taken in and are gone."""

    files: tuple[ListedFile, ...]
    skipped: tuple[str, ...] = ()
    gone: tuple[ListedFile, ...] = ()
    """Files as last seen, sorted by path; those that come back are not new (PC-R07)."""
    unmarked: frozenset[str] = frozenset()
    """Directories whose files wait for a marker; not stored (PC-R09)."""
    later: frozenset[str] = frozenset()
    """Paths of files of revisions that do not count yet; not stored."""
    is_marked: bool = False
    """Whether a marker of Tidegate stands; not stored."""

    @property
    def entries(self) -> list[list[Any]]:
        """The files as they are stored: with what else is known, with a word if they are gone.

        What is not known is left out: they are as early versions stored them, so that digests stay.
        """
        return [*map(_entry, self.files), *([*_entry(file), _GONE] for file in self.gone)]

    @classmethod
    def of_entries(cls, entries: Iterable[list[Any]], skipped: tuple[str, ...]) -> Listing:
        """Return the listing that `entries` describes."""
        found: tuple[list[ListedFile], list[ListedFile]] = ([], [])
        for path, size, modified, *rest in entries:
            tail = next((item for item in rest if isinstance(item, str) and item != _GONE), "")
            tag = next((item[0] for item in rest if isinstance(item, list)), "")
            marked = next((tuple(item[_JOINED]) for item in rest if isinstance(item, dict)), None)
            file = ListedFile(path, size, modified, tail, tag, marked)
            found[_GONE in rest].append(file)
        return cls(tuple(found[0]), skipped, tuple(found[1]))

    @property
    def digest(self) -> str:
        """16 hexadecimal digits over the files."""
        return digest(self.entries)

    @property
    def known(self) -> dict[str, ListedFile]:
        """All files by path, including those that are gone."""
        return {file.path: file for file in (*self.files, *self.gone)}

    def keeping(self, before: Listing) -> Listing:
        """Return the listing with the files of an earlier one that stand in unmarked directories.

        They were complete once, and are neither gone nor changed while a commit is under way. Nor
        are those of a revision that was taken in and is later than the one that is listed.
        """
        known = {file.path for file in self.files}
        ahead = {file.folder for file in before.files if file.path in self.later - known}
        files = [file for file in self.files if file.folder not in ahead]
        kept = (
            file
            for file in before.files
            if file.folder in ahead or (file.path not in known and file.folder in self.unmarked)
        )
        return replace(self, files=tuple(sorted((*files, *kept))))

    def has_content_of(self, other: Listing) -> bool:
        """Return whether two listings have the same files, whatever their times."""
        return _are_same(self.files, other.files) and _are_same(self.gone, other.gone)

    def remembering(self, before: Listing) -> Listing:
        """Return the listing with the files of an earlier one that are gone by now."""
        standing = {file.path for file in self.files}
        gone = (file for path, file in before.known.items() if path not in standing)
        return replace(self, gone=tuple(sorted(gone)))

    @property
    def lost(self) -> tuple[ListedFile, ...]:
        """The files that are gone and whose rows stand in no other."""
        stand = _Rows.of(self.files)
        return tuple(file for file in self.gone if not stand.have(file))

    def head(self, number: int, taken_at: datetime) -> ListingHead:
        """Number the listing."""
        return ListingHead(number, self.digest, taken_at, len(self.files), self.skipped)


@dataclass(frozen=True)
class ListingDifference:
    """The difference between two listings."""

    added: tuple[ListedFile, ...]
    disturbed: tuple[tuple[ListedFile, ListedFile | None], ...]
    """Known files and their current state: with other content, or None if gone (PC-R07)."""
    returned: tuple[ListedFile, ...]
    """Files whose rows were gone and are back unchanged."""
    replacing: tuple[ListedFile, ...] = ()
    """New files that came in the place of known ones: some of their rows were read (PC-R09)."""
    replaced: frozenset[str] = frozenset()
    """All paths under which rows may have been read that these have."""
    aliases: frozenset[str] = frozenset()
    """All paths under which rows may have been read of files that are not as they were."""

    @property
    def named(self) -> list[str]:
        """The files that are not as they were, each with what became of it."""
        named = [f"{file.path} ({'changed' if now else 'gone'})" for file, now in self.disturbed]
        named += [f"{file.path} (in place of others)" for file in self.replacing]
        return named + [f"{file.path} (back)" for file in self.returned]

    @property
    def unsettled(self) -> ListingDifference:
        """What neither can be read as new nor may be ignored: old rows beside new (PC-R09)."""
        disturbed = tuple(item for item in self.disturbed if item[0].path in self.replaced)
        return replace(self, added=(), disturbed=disturbed, returned=(), aliases=self.replaced)


def came_before(listing: Listing, until: datetime, known: Collection[str]) -> Listing:
    """Leave out files that arrived at or after a time, except those with a known path."""
    bound = nanoseconds(until)
    kept = tuple(file for file in listing.files if file.modified < bound or file.path in known)
    return Listing(kept, listing.skipped)


def listing_time(
    listing: Listing, known: Collection[str], now: datetime, after: Instant | None
) -> datetime:
    """Return the time of the newest new file, not later than the clock or before the checkpoint.

    Args:
        listing: the files of the directory.
        known: paths that the checkpoint knows; a file that was rewritten ends no later interval.
        now: the time of the listing; files from the future count as of now.
        after: the checkpoint.
    """
    youngest = max((file.modified for file in listing.files if file.path not in known), default=0)
    moment = min(_moment(youngest), now)
    return max(moment, after.time) if after else moment


def cuts(listing: Listing, instant: Instant) -> tuple[Instant, ...]:
    """Return an instant for each time at which files of a listing arrived, the earliest first.

    Each one has the files that had arrived by then; files from the future count as of the listing's
    time.
    """
    moments = sorted({came(file, instant) for file in listing.files})
    return tuple(Instant(f"{instant.id}{_CUT}{instant_text(at)}", at) for at in moments)


def cut(listing: Listing, whole: Instant, instant: Instant) -> Listing:
    """Return the files of an instant of a listing: those that had arrived, or all of them.

    Args:
        listing: the whole listing.
        whole: the listing's own instant.
        instant: that one, or one of its `cuts`.
    """
    if _CUT not in instant.id:
        return listing
    kept = tuple(file for file in listing.files if came(file, whole) <= instant.time)
    return Listing(kept, listing.skipped)


def listing_id(instant: Instant) -> str:
    """Return the id of the listing that an instant is, or is part of."""
    return instant.id.partition(_CUT)[0]


def number_of(instant: Instant) -> int:
    """Return the number of a listing from its instant."""
    return int(instant.id.partition("-")[0])


def difference(before: Listing | None, after: Listing) -> ListingDifference:
    """Compare two listings; without a first one, everything is new.

    A file is new if its path is, and a joined one is known if all are that were joined to it. What
    a marker lists where it listed a file before that is gone came in the place of that one.
    """
    before = before or Listing(())
    known, now = before.known, {file.path: file for file in after.files}
    disturbed = tuple(_disturbed(before, now, _Rows.of(after.files)))
    left = {file.folder for file, found in disturbed if found is None}
    stood, taken = _Rows.of(before.files), _Rows.of(known.values())
    back = [file for file in before.gone if file.path in now and now[file.path].is_same(file)]
    added: list[ListedFile] = []
    replacing: list[ListedFile] = []
    replaced: set[str] = set()
    for file in after.files:
        if file.path in known:
            continue
        if taken.have(file):
            back.append(file)
        elif file.made_of is not None and (file.folder in left or taken.have_some(file)):
            replacing.append(file)
            replaced |= taken.paths & file.parts
        else:
            added.append(file)
    places = {file.folder for file in replacing}
    replaced.update(file.path for file, _ in disturbed if file.folder in places)
    returned = tuple(file for file in back if not stood.have(file))
    concerned = {file.path for file, _ in disturbed}.union(
        *({file.path, *file.parts} for file in returned)
    )
    instead = _aliases(replaced, known.values())
    aliases = instead | _aliases(concerned, known.values())
    return ListingDifference(tuple(added), disturbed, returned, tuple(replacing), instead, aliases)


def _aliases(paths: set[str], known: Collection[ListedFile]) -> frozenset[str]:
    """Add what files were joined to, and what was joined to them, however often."""
    joined = [{file.path, *file.parts} for file in known if file.made_of]
    found, count = set(paths), -1
    while count < len(found):
        count = len(found)
        for names in joined:
            if not found.isdisjoint(names):
                found |= names
    return frozenset(found)


@dataclass(frozen=True)
class _Rows:
    """What has rows of which files."""

    paths: AbstractSet[str]
    """Of files, and of all that was joined to them."""

    @classmethod
    def of(cls, files: Iterable[ListedFile]) -> Self:
        paths: set[str] = set()
        for file in files:
            paths.add(file.path)
            if file.made_of:
                paths |= file.parts
        return cls(paths)

    def have(self, file: ListedFile) -> bool:
        """Return whether all rows of a file are among these."""
        return file.path in self.paths or (bool(file.made_of) and file.parts <= self.paths)

    def have_some(self, file: ListedFile) -> bool:
        """Return whether what was joined to a file is among them, in part."""
        return not self.paths.isdisjoint(file.parts)


def _disturbed(
    before: Listing, now: dict[str, ListedFile], stand: _Rows
) -> Iterator[tuple[ListedFile, ListedFile | None]]:
    for file in before.files:
        found = now.get(file.path)
        if found is None:
            if not stand.have(file):
                yield file, None
        elif not found.is_same(file):
            yield file, found
    for file in before.gone:
        found = now.get(file.path)
        if found is not None and not found.is_same(file):
            yield file, found


def _entry(file: ListedFile) -> list[Any]:
    tail, tag = [file.tail] if file.tail else [], [[file.tag]] if file.tag else []
    marked = [] if file.made_of is None else [{_JOINED: list(file.made_of)}]
    return [file.path, file.size, file.modified, *tail, *tag, *marked]


def _are_same(files: Sequence[ListedFile], others: Sequence[ListedFile]) -> bool:
    """Compare files of two listings, both sorted by path."""
    return len(files) == len(others) and all(
        one.path == other.path and one.is_same(other)
        for one, other in zip(files, others, strict=True)
    )


def came(file: ListedFile, listed: Instant) -> datetime:
    """Return when a file arrived; for one from the future, the time of its listing."""
    return min(_moment(file.modified), listed.time)


def _moment(modified: int) -> datetime:
    # Floor division: a time after the file's own would put it into the next interval.
    return _EPOCH + timedelta(microseconds=modified // _NANOSECONDS)
