"""Listings are instants, and what changed in files already taken in is never read in silence."""

from __future__ import annotations

import contextlib
import itertools
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from golden_iceberg import read
from tidegate.config import read_source
from tidegate.errors import (
    InstantNotFound,
    PredicateInvalid,
    SourceFileDamaged,
    SourceRewritten,
    StateFileLost,
)
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.source.files import FilesSource
from tidegate.source.files.footers import FolderColumns
from tidegate.source.files.listing import ListedFile, Listing
from tidegate.source.files.store import ListingStore
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class Folder:
    """A directory of Parquet files with its listings beside it."""

    def __init__(self, place: Path) -> None:
        self.root = place / "table"
        self.listings = place / "listings"
        self.root.mkdir()

    def put(self, path: str, **columns: list[Any]) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), file)

    def source(self, **keys: Any) -> FilesSource:
        config = read_source({"kind": "files", "path": str(self.root), **keys})
        return FilesSource(config, LocalStorage(), str(self.listings))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def no_columns() -> FolderColumns:
    return FolderColumns(pa.schema([]))


def _names(units: Any) -> list[str]:
    return [piece.path.rpartition("/")[2] for piece in units]


def test_equal_listing_makes_no_new_instant_also_for_another_process(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])

    first = folder.source().timeline.pin(NOW)
    second = folder.source().timeline.pin(NOW + HOUR)

    assert first == second
    assert first.head
    assert first.head.time == NOW
    assert first.head.id.startswith("000001-")


def test_changed_file_is_refused_before_a_window_is_taken(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    source = folder.source()
    taken = source.timeline.pin(NOW).head
    folder.put("a.parquet", id=[1, 2])
    pin = source.timeline.pin(NOW + HOUR)

    with pytest.raises(SourceRewritten) as refused:
        source.timeline.instants(pin, taken)

    assert refused.value.path == "a.parquet"
    assert refused.value.expected != refused.value.found


@pytest.mark.parametrize("event", ["changed", "vanished"])
def test_disturbed_file_fails_or_is_ignored_and_noted(event: str, folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    taken = folder.source().timeline.pin(NOW).head
    if event == "changed":
        folder.put("a.parquet", id=[3])
    else:
        (folder.root / "a.parquet").unlink()
    folder.put("b.parquet", id=[2])
    careless = folder.source(on_changed_file="ignore")
    pin = careless.timeline.pin(NOW + HOUR)
    assert pin.head
    window = InstantRange(taken, pin.head)

    with pytest.raises(SourceRewritten):
        folder.source().slicing.units(pin, window)
    units = careless.slicing.units(pin, window)

    assert _names(units) == ["b.parquet"]
    (note,) = units.notes
    now = "changed" if event == "changed" else "gone"
    assert note.startswith(f"ignored 1 {event} file: a.parquet ({now}); the rows")
    assert "`tidegate rebuild PIPELINE PARTITION`" in note


def test_many_disturbed_files_are_named_to_the_third_and_counted_in_the_instants(
    folder: Folder,
) -> None:
    for name in "abcde":
        folder.put(f"{name}.parquet", id=[1])
    taken = folder.source().timeline.pin(NOW).head
    (folder.root / "b.parquet").unlink()
    for name in "acd":
        folder.put(f"{name}.parquet", id=[7])
    careless = folder.source(on_changed_file="ignore")
    pin = careless.timeline.pin(NOW + HOUR)
    assert pin.head

    (note,) = careless.slicing.units(pin, InstantRange(taken, pin.head)).notes
    (report,) = careless.timeline.describe(pin, [pin.head])

    assert note.startswith(
        "ignored 4 changed or vanished files: a.parquet (changed), b.parquet (gone), "
        "c.parquet (changed) and 1 more; the rows"
    )
    assert (report.files_added, report.files_removed, report.files_changed) == (0, 1, 3)


def test_partition_columns_come_from_the_path_and_go_last(folder: Folder) -> None:
    folder.put("dt=2026-01-01/a.parquet", dt=["wrong"], id=[1])
    folder.put("dt=__DEFAULT_PARTITION__/b.parquet", dt=["wrong"], id=[2])
    source = folder.source(partition_by={"dt": "date"})
    pin = source.timeline.pin(NOW)
    assert pin.head

    table = read(source, pin, source.slicing.units(pin, InstantRange(None, pin.head)))

    assert table.schema == pa.schema([("id", pa.int64()), ("dt", pa.date32())])
    assert [row["dt"] and row["dt"].isoformat() for row in table.to_pylist()] == [
        "2026-01-01",
        None,
    ]


def test_column_that_a_file_lacks_is_null(folder: Folder) -> None:
    folder.put("a.parquet", id=[1], name=["x"])
    folder.put("b.parquet", id=pa.array([2], pa.int32()))
    source = folder.source()
    pin = source.timeline.pin(NOW)
    assert pin.head

    table = read(source, pin, source.slicing.units(pin, InstantRange(None, pin.head)))

    assert table.to_pydict() == {"id": [1, 2], "name": ["x", None]}


def test_filter_on_partition_keys_prunes_files_exactly(folder: Folder) -> None:
    for day in (1, 2, 3):
        folder.put(f"dt=2026-01-0{day}/a.parquet", id=[day])
    folder.put("dt=__DEFAULT_PARTITION__/a.parquet", id=[0])
    keys = {"partition_by": {"dt": "date"}}

    pruning = folder.source(read={"filter": "dt >= date '2026-01-02'"}, **keys)
    mixed = folder.source(read={"filter": "dt >= date '2026-01-02' or id = 0"}, **keys)
    pin = pruning.timeline.pin(NOW)
    assert pin.head
    window = InstantRange(None, pin.head)

    assert len(pruning.slicing.units(pin, window)) == 2
    assert pruning.slicing.units(pin, window).notes == (
        "the filter ruled out 2 files by partition",
    )
    assert len(mixed.slicing.units(pin, window)) == 4


def test_filter_that_does_not_fit_is_refused_while_planning(folder: Folder) -> None:
    folder.put("dt=2026-01-01/a.parquet", id=[1])
    source = folder.source(partition_by={"dt": "date"}, read={"filter": "day > 3"})
    pin = source.timeline.pin(NOW)
    assert pin.head

    with pytest.raises(PredicateInvalid):
        source.slicing.units(pin, InstantRange(None, pin.head))


def test_file_that_is_no_parquet_is_named(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    (folder.root / "b.parquet").write_bytes(b"not at all")
    source = folder.source()
    pin = source.timeline.pin(NOW)
    assert pin.head

    with pytest.raises(SourceFileDamaged, match=r"b\.parquet"):
        source.slicing.units(pin, InstantRange(None, pin.head))


def test_skipped_paths_are_noted(folder: Folder) -> None:
    folder.put("dt=2026-01-01/a.parquet", id=[1])
    folder.put("stray/a.parquet", id=[2])
    source = folder.source(partition_by={"dt": "date"}, on_bad_path="skip")
    pin = source.timeline.pin(NOW)
    assert pin.head

    units = source.slicing.units(pin, InstantRange(None, pin.head))

    assert units.notes == ("skipped 1 path that is no partition: stray",)


def test_checkpoint_whose_listing_is_gone_is_refused(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    source = folder.source()

    with pytest.raises(StateFileLost):
        source.timeline.instants(source.timeline.pin(NOW), Instant("000001-0000000000000000", NOW))


def test_start_by_number_and_by_time(folder: Folder) -> None:
    for number in (1, 2, 3):
        folder.put(f"{number}.parquet", id=[number])
        _age(folder.root / f"{number}.parquet", NOW + number * HOUR)
        folder.source().timeline.pin(NOW + number * HOUR)
    at_two = (NOW + 2 * HOUR).isoformat()
    expected = {
        ("after", "2"): 2,
        ("from", "2"): 1,
        ("after", at_two): 2,
        ("from", at_two): 1,
        ("from", "1"): 0,
    }

    for (side, value), number in expected.items():
        source = folder.source(start={side: value})
        pin = source.timeline.pin(NOW + 9 * HOUR)
        checkpoint = source.timeline.first_checkpoint(pin)
        files = source.slicing.units(pin, InstantRange(None, checkpoint)) if checkpoint else ()
        assert len(files) == number
    source = folder.source(start={"after": "7"})
    pin = source.timeline.pin(NOW + 9 * HOUR)
    with pytest.raises(InstantNotFound):
        source.timeline.first_checkpoint(pin)


def test_history_ends_with_the_moment_of_the_start(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    os.utime(folder.root / "a.parquet", (NOW.timestamp(),) * 2)
    source = folder.source()
    pin = source.timeline.pin(NOW + HOUR)
    assert pin.head

    ends = [
        [
            item.time
            for item in source.timeline.history(pin, pin.head, DataInterval(start, start + DAY))
        ]
        for start in (NOW, NOW + timedelta(microseconds=1))
    ]

    assert ends == [[NOW], []]


def test_two_processes_that_look_at_once_agree_on_one_numbering(tmp_path: Path) -> None:
    root = str(tmp_path / "listings")
    one, other = ListingStore(LocalStorage(), root), ListingStore(LocalStorage(), root)
    assert one.heads() == other.heads() == ()
    listings = [Listing((ListedFile(name, 1, 1),)) for name in ("a", "b")]

    first = one.record(listings[0], NOW, no_columns, latest=None)
    second = other.record(listings[1], NOW, no_columns, latest=None)
    again = other.record(listings[1], NOW + HOUR, no_columns, latest=None)

    assert (first.number, second.number, again) == (1, 2, second)
    fresh = ListingStore(LocalStorage(), root)
    assert fresh.heads() == (first, second)
    assert fresh.listing(second) == listings[1]


def test_listings_without_a_place_stay_in_memory(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    config = read_source({"kind": "files", "path": str(folder.root)})
    source = FilesSource(config, LocalStorage(), None)
    pin = source.timeline.pin(NOW)
    assert pin.head

    assert len(source.slicing.units(pin, InstantRange(None, pin.head))) == 1
    assert not folder.listings.exists()


def test_large_text_of_the_first_file_is_read_without_a_cast(folder: Folder) -> None:
    folder.put("a.parquet", name=pa.array(["x"], pa.large_string()))
    folder.put("b.parquet", name=["y"])
    source = folder.source()
    pin = source.timeline.pin(NOW)
    assert pin.head

    table = read(source, pin, source.slicing.units(pin, InstantRange(None, pin.head)))

    assert table.schema.types == [pa.large_string()]
    assert table.column("name").to_pylist() == ["x", "y"]


def _age(path: Path, moment: datetime) -> None:
    os.utime(path, (moment.timestamp(), moment.timestamp()))


def test_listing_has_the_time_of_its_youngest_file(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    folder.put("b.parquet", id=[2])
    _age(folder.root / "a.parquet", NOW - 2 * HOUR)
    _age(folder.root / "b.parquet", NOW - HOUR)

    assert folder.source().timeline.pin(NOW).head.time == NOW - HOUR


def test_listing_with_a_file_from_the_future_is_of_now(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    _age(folder.root / "a.parquet", NOW + HOUR)

    assert folder.source().timeline.pin(NOW).head.time == NOW


@pytest.mark.parametrize("stands", [True, False])
def test_listing_after_a_younger_checkpoint_does_not_go_back(
    folder: Folder, *, stands: bool
) -> None:
    folder.put("a.parquet", id=[1])
    _age(folder.root / "a.parquet", NOW - HOUR)
    checkpoint = folder.source().timeline.pin(NOW).head
    if not stands:
        (folder.root / "a.parquet").unlink()
    folder.put("b.parquet", id=[2])
    _age(folder.root / "b.parquet", NOW - 5 * HOUR)

    assert folder.source().timeline.pin(NOW, after=checkpoint).head.time == NOW - HOUR


def test_listing_until_a_moment_leaves_out_what_came_then_or_later(folder: Folder) -> None:
    for name, moment in (("a", NOW - HOUR), ("b", NOW), ("c", NOW + HOUR)):
        folder.put(f"{name}.parquet", id=[1])
        _age(folder.root / f"{name}.parquet", moment)
    source = folder.source()

    first = source.timeline.pin(NOW + 2 * HOUR, until=NOW)
    second = source.timeline.pin(NOW + 2 * HOUR, until=NOW + timedelta(microseconds=1))

    assert _names(source.slicing.units(first, InstantRange(None, first.head))) == ["a.parquet"]
    assert _names(source.slicing.units(second, InstantRange(first.head, second.head))) == [
        "b.parquet"
    ]


def test_listing_until_an_earlier_moment_still_knows_what_was_taken_in(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    _age(folder.root / "a.parquet", NOW)
    source = folder.source()
    taken = source.timeline.pin(NOW + HOUR)
    folder.put("b.parquet", id=[2])
    source.timeline.pin(NOW + HOUR)

    again = source.timeline.pin(NOW + HOUR, until=NOW - HOUR, after=taken.head)

    assert _names(source.slicing.units(again, InstantRange(None, again.head))) == ["a.parquet"]


def test_listing_that_is_read_whole_has_all_that_stands_and_belongs_to_the_interval(
    folder: Folder,
) -> None:
    for name, moment in (("a", NOW - HOUR), ("b", NOW + HOUR)):
        folder.put(f"{name}.parquet", id=[1])
        _age(folder.root / f"{name}.parquet", moment)
    source = folder.source(read={"mode": "snapshot"})

    pin = source.timeline.pin(NOW + 2 * HOUR, until=NOW)

    assert pin.head
    assert NOW - HOUR < pin.head.time < NOW
    files = source.slicing.units(pin, InstantRange(None, pin.head))
    assert _names(files) == ["a.parquet", "b.parquet"]


def test_state_of_a_checkpoint_that_is_read_whole_is_never_disturbed(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    source = folder.source(read={"mode": "snapshot"})
    taken = source.timeline.pin(NOW).head
    assert taken
    assert (
        source.timeline.checkpoint_state(source.timeline.pin(NOW, after=taken), taken).state
        == "caught up"
    )
    folder.put("a.parquet", id=[1, 2])

    found = source.timeline.checkpoint_state(source.timeline.pin(NOW + HOUR, after=taken), taken)

    assert (found.state, found.detail) == ("in lineage", "the next load reads all 1 file")


def test_directory_that_is_whole_again_is_not_read_whole_again(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    folder.put("b.parquet", id=[2])
    source = folder.source(read={"mode": "snapshot"})
    taken = source.timeline.pin(NOW).head
    (folder.root / "b.parquet").rename(folder.root.parent / "away")
    source.timeline.pin(NOW + HOUR, after=taken)
    (folder.root.parent / "away").rename(folder.root / "b.parquet")

    again = source.timeline.pin(NOW + 2 * HOUR, after=taken)

    assert again.head != taken
    assert source.timeline.following(again, taken).instants == ()


def test_listing_until_a_moment_before_all_files_is_no_instant(folder: Folder) -> None:
    folder.put("a.parquet", id=[1])
    folder.source().timeline.pin(NOW)

    assert folder.source().timeline.pin(NOW, until=NOW - DAY).head is None


def test_text_written_as_views_is_read_as_text(folder: Folder) -> None:
    texts = ["eu", "a text too long to stand inline", None]
    folder.put("a.parquet", name=pa.array(texts, pa.string_view()))
    source = folder.source()
    pin = source.timeline.pin(NOW)

    table = read(source, pin, source.slicing.units(pin, InstantRange(None, pin.head)))

    assert table.schema.field("name").type == pa.string()
    assert table.column("name").to_pylist() == texts


class Died(Exception):
    """The process is gone."""


def test_look_that_died_leaves_no_listing_without_its_files(tmp_path: Path) -> None:
    listing = Listing((ListedFile("a.parquet", 3, 0),))

    def die() -> None:
        raise Died

    for at in range(1, 100):
        root = str(tmp_path / str(at))
        died = True
        try:
            store = ListingStore(stopping_storage(Stopper(at, dying=die)), root)
            store.record(listing, NOW, no_columns, latest=None)
            died = False
        except Died:
            pass
        left = ListingStore(LocalStorage(), root)
        # Another look may see other files, so that nobody writes those of a head again.
        assert [left.listing(head).files for head in left.heads()] in ([], [listing.files])
        if not died:
            break

    assert at > 2


@pytest.mark.parametrize("side", ["before", "after"])
def test_listing_that_another_process_named_and_died_over_stands_after_a_power_cut(
    tmp_path: Path, side: str
) -> None:
    listing = Listing((ListedFile("a.parquet", 3, 0),))

    def die() -> None:
        raise Died

    for at in itertools.count(1):
        place = tmp_path / str(at)
        (place / "work").mkdir(parents=True)
        disk = Disk(place / "work", place / "kept")
        stopper = Stopper(at, side, dying=die, disk=disk)
        root = f"{place}/work/listings"
        with contextlib.suppress(Died):
            ListingStore(stopping_storage(stopper), root).record(
                listing, NOW, no_columns, latest=None
            )

        found = ListingStore(stopping_storage(Stopper(disk=disk)), root).record(
            listing, NOW, no_columns, latest=None
        )

        disk.leave(place / "left", chance("lost", 0))
        left = ListingStore(LocalStorage(), f"{place}/left/listings")
        assert [*left.heads()] == [found]
        assert left.listing(found).files == listing.files
        if len(stopper.made) < at:
            break

    assert at > 2
