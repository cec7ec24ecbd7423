"""Listings say what stood in a directory, what came since, and when (PC-R07)."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.instant import Instant
from tidegate.source.files.listing import (
    ListedFile,
    Listing,
    came_before,
    cut,
    cuts,
    difference,
    listing_id,
    listing_time,
    number_of,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _nanoseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1_000


AT_NOW = _nanoseconds(NOW)
# Some nanoseconds and some seconds around now: in one microsecond, in several, in the future.
TIMES = st.builds(
    lambda seconds, nanoseconds: AT_NOW + seconds * 10**9 + nanoseconds,
    st.integers(-2, 2),
    st.integers(-1_500, 1_500),
)
FOLDERS = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.integers(1, 2), TIMES), max_size=4
).map(lambda found: tuple(ListedFile(path, *found[path]) for path in sorted(found)))
SOME = st.sets(st.sampled_from("abcd"))


def _paths(files: Any) -> set[str]:
    return {file.path for file in files}


@given(looks=st.lists(FOLDERS, min_size=1, max_size=4), last=FOLDERS)
def test_file_is_added_once_however_often_it_goes_and_comes_back(
    looks: list[tuple[ListedFile, ...]], last: tuple[ListedFile, ...]
) -> None:
    before = Listing(looks[0])
    for files in looks[1:]:
        before = Listing(files).remembering(before)

    found = difference(before, Listing(last))

    ever = {file.path for files in looks for file in files}
    assert _paths(found.added) == _paths(last) - ever


@given(looks=st.lists(FOLDERS, min_size=1, max_size=4), last=FOLDERS)
def test_file_that_is_not_as_it_was_last_seen_is_disturbed(
    looks: list[tuple[ListedFile, ...]], last: tuple[ListedFile, ...]
) -> None:
    before, seen = Listing(()), {}
    for files in looks:
        before = Listing(files).remembering(before)
        seen |= {file.path: file for file in files}

    found = difference(before, Listing(last))

    standing, now = _paths(looks[-1]), {file.path: file for file in last}
    assert {was.path: what for was, what in found.disturbed} == {
        path: now.get(path)
        for path, was in seen.items()
        if now.get(path) != was and (path in now or path in standing)
    }
    assert _paths(found.returned) == {
        path for path, was in seen.items() if path not in standing and now.get(path) == was
    }


def test_everything_is_new_without_a_listing_before() -> None:
    files = (ListedFile("a", 1, AT_NOW),)

    found = difference(None, Listing(files))

    assert (found.added, found.disturbed, found.returned) == (files, (), ())


@given(files=FOLDERS, gone=FOLDERS, skipped=st.lists(st.text(max_size=2)).map(tuple))
def test_listing_is_the_same_once_it_was_stored(
    files: tuple[ListedFile, ...], gone: tuple[ListedFile, ...], skipped: tuple[str, ...]
) -> None:
    listing = Listing(files, skipped, gone)

    again = Listing.of_entries(json.loads(json.dumps(listing.entries)), skipped)

    assert again == listing
    assert again.digest == listing.digest


@given(one=FOLDERS, other=FOLDERS, gone=FOLDERS)
def test_listings_are_one_instant_exactly_if_files_and_gone_ones_are(
    one: tuple[ListedFile, ...], other: tuple[ListedFile, ...], gone: tuple[ListedFile, ...]
) -> None:
    assert (Listing(one).digest == Listing(other).digest) == (one == other)
    assert (Listing(one, gone=gone).digest == Listing(one).digest) == (gone == ())


@given(files=FOLDERS, known=SOME)
def test_file_that_came_later_is_left_out_unless_it_was_known(
    files: tuple[ListedFile, ...], known: set[str]
) -> None:
    found = came_before(Listing(files), NOW, known)

    assert found.files == tuple(it for it in files if it.modified < AT_NOW or it.path in known)


@given(micros=st.integers(-10_000_000, 10_000_000))
def test_moment_is_told_from_the_nanosecond_before_it(micros: int) -> None:
    at = AT_NOW + micros * 1_000
    before, then = ListedFile("a", 1, at - 1), ListedFile("b", 1, at)

    found = came_before(Listing((before, then)), NOW + timedelta(microseconds=micros), ())

    assert found.files == (before,)


@given(files=FOLDERS, known=SOME, after=st.none() | st.integers(-3, 3))
def test_time_is_that_of_the_youngest_new_file_between_checkpoint_and_clock(
    files: tuple[ListedFile, ...], known: set[str], after: int | None
) -> None:
    checkpoint = None if after is None else Instant("1-x", NOW + timedelta(seconds=after))

    found = listing_time(Listing(files), known, NOW, checkpoint)

    new = [file.modified // 1_000 * 1_000 for file in files if file.path not in known]
    youngest = min(max(new, default=0), AT_NOW)
    assert _nanoseconds(found) == max(youngest, _nanoseconds(checkpoint.time) if checkpoint else 0)


@given(files=FOLDERS)
def test_cuts_bring_each_file_once_and_the_last_one_brings_all(
    files: tuple[ListedFile, ...],
) -> None:
    whole = Instant("000007-abc", NOW)
    listing = Listing(files)

    parts = [cut(listing, whole, instant) for instant in cuts(listing, whole)]

    grown = [set(part.files) for part in parts]
    assert all(less < more for less, more in itertools.pairwise(grown))
    assert (grown[-1] if grown else set()) == set(files)
    assert cut(listing, whole, whole) is listing


@given(files=FOLDERS)
def test_cut_has_the_files_that_had_come_by_its_time(files: tuple[ListedFile, ...]) -> None:
    """Files from the future count as of the listing's time."""
    whole = Instant("000007-abc", NOW)

    for instant in cuts(Listing(files), whole):
        had_come = {
            file
            for file in files
            if min(file.modified // 1_000 * 1_000, AT_NOW) <= _nanoseconds(instant.time)
        }
        assert set(cut(Listing(files), whole, instant).files) == had_come
        assert instant.time <= NOW


def test_cut_names_its_listing() -> None:
    listing = Listing((ListedFile("a", 1, AT_NOW - 5_000),))
    whole = listing.head(12, NOW).instant
    (part,) = cuts(listing, whole)

    assert part.id != whole.id
    assert listing_id(part) == listing_id(whole) == whole.id == f"000012-{listing.digest}"
    assert number_of(part) == number_of(whole) == 12


def test_files_of_a_directory_without_a_marker_stay_as_they_were() -> None:
    before = Listing((ListedFile("dt=1/a", 1, 1, "t"), ListedFile("dt=2/b", 1, 1)))
    found = Listing((ListedFile("dt=3/c", 1, 1),), unmarked=frozenset({"dt=1"}))

    kept = found.keeping(before)

    assert [file.path for file in kept.files] == ["dt=1/a", "dt=3/c"]
    assert kept.files[0] == before.files[0]


NAMES = "abcdef"


@st.composite
def _marked(draw: st.DrawFn) -> Listing:
    """Files of one partition as markers list them: single ones, and ones joined of several."""
    files: list[ListedFile] = []
    left = draw(st.lists(st.sampled_from(NAMES), unique=True))
    while left:
        taken = draw(st.integers(1, len(left)))
        parts, left = tuple(left[:taken]), left[taken:]
        name = "".join(sorted(parts))
        files.append(ListedFile(f"d/{name}", 1, 1, made_of=parts if len(parts) > 1 else ()))
    return Listing(tuple(sorted(files)))


@given(looks=st.lists(_marked(), min_size=1, max_size=4), last=_marked())
def test_joined_rows_are_taken_once_or_told(looks: list[Listing], last: Listing) -> None:
    before = looks[0]
    for look in looks[1:]:
        before = look.remembering(before)
    taken = {row for file in before.known.values() for row in file.path.partition("/")[2]}
    stood = {row for file in before.files for row in file.path.partition("/")[2]}

    found = difference(before, last)

    added = [row for file in found.added for row in file.path.partition("/")[2]]
    standing = {row for file in last.files for row in file.path.partition("/")[2]}
    assert taken.isdisjoint(added)
    assert len(added) == len(set(added))
    # What has rows that were read is told if it has others, and what stands no more is, too.
    assert (taken | {*added} >= standing) == (not found.replacing)
    assert bool(found.disturbed) == (not stood <= standing)
    if found.replacing:
        assert found.replaced
        assert found.unsettled.added == found.unsettled.returned == ()


def test_what_is_listed_in_the_place_of_a_file_came_for_it() -> None:
    before = Listing((ListedFile("d/a", 1, 1, made_of=()), ListedFile("e/a", 1, 1, made_of=())))
    after = Listing((ListedFile("d/b", 1, 1, made_of=()), *before.files[1:]))
    beside = ListedFile("e/b", 1, 1, made_of=())

    found = difference(before, Listing((*after.files, beside)))

    assert found.replacing == after.files[:1]
    assert found.replaced == {"d/a"}
    assert found.added == (beside,)
    assert found.named == ["d/a (gone)", "d/b (in place of others)"]
    # Without a marker that lists it, nothing tells whose place it has.
    plain = [
        Listing(tuple(it._replace(made_of=None) for it in one.files)) for one in (before, after)
    ]
    assert difference(*plain).replacing == ()
    assert _paths(difference(*plain).added) == {"d/b"}


def test_what_was_joined_is_stored_with_the_listing() -> None:
    files = (
        ListedFile("a", 1, 2),
        ListedFile("b", 1, 2, "tail", "tag", ("x", "y")),
        ListedFile("c", 1, 2, made_of=()),
    )
    whole = Listing(files, gone=(ListedFile("d", 1, 2, "tail", made_of=("z",)),))

    stored = json.loads(json.dumps(whole.entries))

    assert stored[0] == ["a", 1, 2]
    assert Listing.of_entries(stored, ()) == whole


A, B, C = (ListedFile(f"d/{name}", 1, 1, made_of=()) for name in "abc")
AB = ListedFile("d/ab", 1, 1, made_of=("a", "b"))


def test_files_that_were_joined_and_taken_apart_again_never_went() -> None:
    joined = Listing((AB,), gone=(A, B))

    found = difference(joined, Listing((A, B)))

    assert (found.added, found.disturbed, found.returned, found.replacing) == ((), (), (), ())
    assert joined.lost == ()


def test_joined_rows_that_were_gone_are_back() -> None:
    found = difference(Listing((C,), gone=(A, B)), Listing((AB, C)))

    assert (found.added, found.returned) == ((), (AB,))
    assert found.aliases == {"d/a", "d/b", "d/ab"}
    assert Listing((C,), gone=(A, B)).lost == (A, B)


def test_only_what_came_in_the_place_of_others_is_unsettled() -> None:
    elsewhere = ListedFile("e/a", 1, 1, made_of=())

    found = difference(Listing((A, elsewhere)), Listing((B,)))

    assert {file.path for file, _ in found.disturbed} == {"d/a", "e/a"}
    assert [file.path for file, _ in found.unsettled.disturbed] == ["d/a"]
    assert (found.unsettled.replacing, found.unsettled.aliases) == ((B,), {"d/a"})


def test_rows_are_known_by_all_names_that_they_had() -> None:
    """A file of a was joined with b, and that with c."""
    again = ListedFile("d/abc", 1, 1, made_of=("ab", "c"))
    known = Listing((again,), gone=(A, AB, B, C))

    found = difference(known, Listing(()))

    assert found.aliases == {"d/a", "d/b", "d/c", "d/ab", "d/abc"}
