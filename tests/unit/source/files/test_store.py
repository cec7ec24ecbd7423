"""Listings are numbered without gaps, kept once each, and found again by another process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InstantNotFound, StateFileDamaged, StateFileLost
from tidegate.model.instant import Instant
from tidegate.source.files.footers import FolderColumns
from tidegate.source.files.listing import ListedFile, Listing
from tidegate.source.files.store import ListingStore
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.files.listing import ListingHead

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)
LISTINGS = [
    Listing(tuple(ListedFile(path, 1, 2) for path in paths)) for paths in ("", "a", "ab", "b")
]


def _store(root: Path | None) -> ListingStore:
    return ListingStore(LocalStorage(), str(root) if root else None, "read it anew")


def _record(
    store: ListingStore, listing: Listing, hour: int = 0, latest: datetime | None = None
) -> ListingHead:
    columns = FolderColumns(pa.schema([("id", pa.int64())]))
    return store.record(listing, NOW + hour * HOUR, lambda: columns, latest=latest)


@given(looks=st.lists(st.sampled_from(LISTINGS), max_size=8))
def test_each_change_is_one_listing_and_numbers_have_no_gaps(
    looks: list[Listing], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("listings")
    changes = [look for place, look in enumerate(looks) if not place or look != looks[place - 1]]

    for look in looks:
        _record(_store(root), look)

    again = _store(root)
    assert [head.number for head in again.heads()] == list(range(1, len(changes) + 1))
    assert [again.listing(head) for head in again.heads()] == changes


@given(looks=st.lists(st.sampled_from(LISTINGS), max_size=5))
def test_listings_in_memory_are_those_on_the_disk(
    looks: list[Listing], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stored, held = _store(tmp_path_factory.mktemp("listings")), _store(None)

    for look in looks:
        assert _record(stored, look) == _record(held, look)

    assert stored.heads() == held.heads()


def test_equal_listing_of_a_later_time_is_a_new_one_where_that_is_asked(tmp_path: Path) -> None:
    """The last one would not belong to the interval that is looked at."""
    store = _store(tmp_path)
    _record(store, LISTINGS[1], 5)

    assert _record(store, LISTINGS[1], 1, latest=NOW + 5 * HOUR).number == 1
    assert _record(store, LISTINGS[1], 1, latest=NOW + 4 * HOUR).number == 2


def test_columns_are_read_for_a_new_listing_only(tmp_path: Path) -> None:
    _record(_store(tmp_path), LISTINGS[1])

    def refuse() -> FolderColumns:
        raise AssertionError

    found = _store(tmp_path).record(LISTINGS[1], NOW, refuse, latest=None)

    assert found.columns is not None


def test_files_of_a_listing_that_were_lost_are_written_with_the_next_look(tmp_path: Path) -> None:
    head = _record(_store(tmp_path), LISTINGS[2])
    path = tmp_path / "files" / f"{head.digest}.json.gz"
    path.unlink()
    with pytest.raises(StateFileLost, match="read it anew"):
        _store(tmp_path).listing(head)

    _record(_store(tmp_path), LISTINGS[2])

    assert _store(tmp_path).listing(head) == LISTINGS[2]


@pytest.mark.parametrize("size", [0, 5, -4])
def test_files_of_a_listing_that_were_cut_are_damaged(tmp_path: Path, size: int) -> None:
    head = _record(_store(tmp_path), LISTINGS[2])
    path = tmp_path / "files" / f"{head.digest}.json.gz"
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(StateFileDamaged):
        _store(tmp_path).listing(head)


def test_head_is_found_by_instant_and_by_part_of_one(tmp_path: Path) -> None:
    store = _store(tmp_path)
    _record(store, LISTINGS[1])
    head = _record(store, LISTINGS[2])

    assert store.head(head.instant, "lake") == head
    assert store.head(Instant(f"{head.instant.id}@2026-11-21", NOW), "lake") == head


def test_instant_without_a_listing_is_lost_on_disk_and_unknown_in_memory(tmp_path: Path) -> None:
    gone = Instant("000001-0000000000000000", NOW)

    for root, error in ((tmp_path, StateFileLost), (None, InstantNotFound)):
        store = _store(root)
        _record(store, LISTINGS[1])
        with pytest.raises(error):
            store.head(gone, "lake")


def test_other_files_beside_the_heads_are_passed_over(tmp_path: Path) -> None:
    _record(_store(tmp_path), LISTINGS[1])
    (tmp_path / "notes.json").write_text("mine")
    (tmp_path / "000002.json.tmp").write_text("cut")

    assert len(_store(tmp_path).heads()) == 1
