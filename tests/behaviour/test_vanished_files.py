"""A folder that a look found incomplete, and that is whole again: nothing doubled, nothing lost."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import DAY_1, NOW, SmallLake, day, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import (
    FileCameBack,
    HistoryChanged,
    SourceEmptied,
    SourceRewritten,
    StateFileDamaged,
    StateFileLost,
    WindowOpen,
)
from tidegate.errors.commands import naming
from tidegate.model.instant import DataInterval
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidegate.pipeline import Pipeline

HOUR = timedelta(hours=1)
START = NOW - 10 * HOUR
"""End of the first interval; the intervals after it are an hour long."""
FIRST = "dt=2026-02-01"


class Folder:
    """Files that may be away for a while, each of rows of one day."""

    def __init__(self, lake: SmallLake) -> None:
        self.lake = lake
        self.root = lake.root / "landing"
        self.away = lake.root / "away"
        self.root.mkdir()
        self.away.mkdir()
        lake.keys = {"commit": {"trigger": "process-time"}}

    def put(self, name: str, moment: datetime, *ids: int) -> Path:
        path = self.root / f"{name}.parquet"
        pq.write_table(pa.table({"id": ids, "at": [DAY_1] * len(ids)}), path)
        os.utime(path, (moment.timestamp(),) * 2)
        return path

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        """Take files away, or all, as a volume that is not mounted; put them back as they were."""
        taken = [path for path in self.root.iterdir() if not names or path.stem in names]
        for path in taken:
            path.rename(self.away / path.name)
        yield
        for path in taken:
            (self.away / path.name).rename(path)

    def pipeline(self, **source: Any) -> Pipeline:
        self.lake.source = {"kind": "files", "path": str(self.root), **source}
        return self.lake.pipeline()

    def published(self) -> list[int]:
        publish(self.pipeline())
        assert self.lake.ids() == {key: ids for key, ids in self.lake.listed_ids().items() if ids}
        return self.lake.ids()[FIRST]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Two files that came before the end of the first interval, and were loaded for it."""
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", START - 2 * HOUR, 1)
    folder.put("b", START - HOUR, 2)
    load(folder.pipeline(), DataInterval(START - 24 * HOUR, START))
    return folder


def look(folder: Folder, **source: Any) -> None:
    folder.pipeline(**source).look(Run("sensor", "sensor"), NOW)


def hour(number: int) -> DataInterval:
    return DataInterval(START + (number - 1) * HOUR, START + number * HOUR)


def rebuild(pipeline: Pipeline) -> None:
    planned = pipeline.rebuild([day(1)], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


@pytest.mark.follows("SourceRewritten")
def test_look_that_found_no_file_stops_no_later_interval(folder: Folder) -> None:
    with folder.without(), pytest.raises(SourceRewritten):
        look(folder)
    folder.put("c", START + 2.5 * HOUR, 3)
    look(folder)

    for number in (1, 2, 3):
        load(folder.pipeline(), hour(number))

    assert folder.published() == [1, 2, 3]


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("rebuilt", [False, True], ids=["loaded", "rebuilt"])
def test_remedy_for_a_file_that_was_away_doubles_nothing(folder: Folder, *, rebuilt: bool) -> None:
    with folder.without():
        with pytest.raises(SourceRewritten, match=r"tidegate rebuild.*ignore.*tidegate load"):
            load(folder.pipeline())
        load(folder.pipeline(on_changed_file="ignore"))
    folder.put("c", START + 2.5 * HOUR, 3)

    load(folder.pipeline(on_changed_file="ignore"))
    if rebuilt:
        rebuild(folder.pipeline(on_changed_file="ignore"))

    assert folder.published() == [1, 2, 3]
    load(folder.pipeline())
    assert folder.published() == [1, 2, 3]


@pytest.mark.parametrize("seen", [0, 1, 2], ids=["unseen", "seen once", "seen twice"])
def test_file_that_comes_back_as_it_was_is_not_read_again(folder: Folder, seen: int) -> None:
    with folder.without("a"):
        for number in range(seen):
            folder.put(f"x{number}", START + HOUR, 10 + number)
            load(folder.pipeline(on_changed_file="ignore"))
    folder.put("c", START + 2.5 * HOUR, 3)

    load(folder.pipeline(on_changed_file="ignore"))

    assert folder.published() == sorted([1, 2, 3, *range(10, 10 + seen)])


def test_file_that_comes_back_as_another_one_is_refused_or_ignored(folder: Folder) -> None:
    with folder.without("a"):
        load(folder.pipeline(on_changed_file="ignore"))
    folder.put("a", START + 2.5 * HOUR, 1, 3)
    with pytest.raises(SourceRewritten, match=r"a\.parquet"):
        load(folder.pipeline())

    load(folder.pipeline(on_changed_file="ignore"))

    assert folder.published() == [1, 2]
    rebuild(folder.pipeline(on_changed_file="ignore"))
    assert folder.published() == [1, 2, 3]


def test_file_that_was_seen_but_not_loaded_is_read_when_it_comes_back(folder: Folder) -> None:
    folder.put("c", START + HOUR, 3)
    look(folder)
    with folder.without("c"):
        folder.put("d", START + HOUR, 4)
        load(folder.pipeline())

    load(folder.pipeline())

    assert folder.published() == [1, 2, 3, 4]


def test_file_that_a_whole_read_did_not_find_is_read_when_it_comes_back(folder: Folder) -> None:
    with folder.without("a"):
        load(folder.pipeline(on_changed_file="ignore"))
        load(folder.pipeline(read={"mode": "snapshot"}))
        assert folder.published() == [2]
        folder.put("c", START + HOUR, 3)
        load(folder.pipeline())

    load(folder.pipeline())

    assert folder.published() == [1, 2, 3]


def test_listing_of_before_a_whole_read_is_not_taken_after_it(folder: Folder) -> None:
    """What it knows of gone files stands in no partition any more."""
    with folder.without("a"):
        folder.put("c", START + 0.5 * HOUR, 3)
        look(folder, on_changed_file="ignore")
        load(folder.pipeline(read={"mode": "snapshot"}), hour(1))
        assert folder.published() == [2, 3]
        load(folder.pipeline(), hour(2))
        load(folder.pipeline())

    load(folder.pipeline())

    assert folder.published() == [1, 2, 3]


def test_rebuild_after_a_look_that_found_no_file_loses_none(folder: Folder) -> None:
    with folder.without(), pytest.raises(SourceRewritten):
        look(folder)
    folder.put("c", START + 2.5 * HOUR, 3)
    look(folder)

    load(folder.pipeline(on_changed_file="ignore"), hour(1))
    rebuild(folder.pipeline(on_changed_file="ignore"))
    load(folder.pipeline(on_changed_file="ignore"), hour(3))

    assert folder.published() == [1, 2, 3]


def test_partition_that_was_rebuilt_without_a_file_has_it_after_another_rebuild(
    folder: Folder,
) -> None:
    pipeline = folder.pipeline(on_changed_file="ignore")
    with folder.without("a"):
        load(pipeline)
        rebuild(pipeline)
        assert folder.published() == [2]
    load(folder.pipeline())

    rebuild(folder.pipeline())

    assert folder.published() == [1, 2]


def test_replay_of_every_window_brings_the_same_rows(folder: Folder) -> None:
    with folder.without("a"):
        folder.put("c", START + HOUR, 3)
        load(folder.pipeline(on_changed_file="ignore"))
    folder.put("d", START + HOUR, 4)
    load(folder.pipeline(on_changed_file="ignore"))

    for sequence in (1, 2, 3):
        pipeline = folder.pipeline(on_changed_file="ignore", split={"target_size": "1MB"})
        pipeline.finish_load(pipeline.replay(sequence, Run("r", "cli"), NOW), NOW, local)

    assert folder.published() == [1, 2, 3, 4]


def test_start_at_the_latest_listing_leaves_out_what_stood_there_also_when_it_was_away(
    tmp_path: Path,
) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", START - HOUR, 1)
    keys = {"start": "latest", "on_changed_file": "ignore"}
    look(folder, **keys)
    with folder.without("a"):
        folder.put("b", START, 2)
        load(folder.pipeline(**keys))

    load(folder.pipeline(**keys))

    assert folder.published() == [2]


def test_note_names_files_that_came_back(folder: Folder) -> None:
    with folder.without("a"):
        load(folder.pipeline(on_changed_file="ignore"))
    pipeline = folder.pipeline(on_changed_file="ignore")

    loaded = load(pipeline)

    scan, _ = pipeline.stored_plan(loaded.windows[-1])
    assert scan.totals.files == 0
    assert [note for note in scan.notes if "came back" in note and "a.parquet" in note]


@pytest.mark.parametrize("away", [False, True])
def test_whole_read_up_to_an_earlier_time_takes_nothing_back(folder: Folder, away: bool) -> None:
    """Also where the checkpoint's listing remembers a file that is gone."""
    folder.put("c", START + 1.1 * HOUR, 3)
    load(folder.pipeline(), hour(2))
    folder.put("d", START + 1.2 * HOUR, 4)
    if away:
        (folder.root / "b.parquet").unlink()
    load(folder.pipeline(on_changed_file="ignore"))
    assert folder.published() == [1, 2, 3, 4]

    load(folder.pipeline(read={"mode": "snapshot"}), until=START)

    assert folder.published() == [1, 2, 3, 4]


@pytest.mark.parametrize("source", [{}, {"on_changed_file": "ignore"}], ids=["fail", "ignore"])
def test_history_has_every_row_once_where_a_look_before_the_first_load_missed_a_file(
    tmp_path: Path, source: dict[str, str]
) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "other")), {"start": "latest", **source}
    folder.put("a", START - 3 * HOUR, 1)
    folder.pipeline(**keys).instants(NOW)
    with folder.without("a"):
        folder.put("b", START - 1.5 * HOUR, 2)
        folder.pipeline(**keys).instants(NOW)
    folder.put("c", START - 0.5 * HOUR, 3)
    folder.pipeline(**keys).instants(NOW)
    load(folder.pipeline(**keys))
    folder.put("e", START + 0.2 * HOUR, 5)
    load(folder.pipeline(**keys))

    for number in (-2, -1, 0):
        load(folder.pipeline(**keys), hour(number))

    assert folder.published() == [1, 2, 3, 5]


@pytest.mark.follows("FileCameBack")
def test_rebuild_by_a_listing_that_misses_what_stands_again_waits_for_a_load(
    folder: Folder,
) -> None:
    with folder.without("a"):
        load(folder.pipeline(on_changed_file="ignore"))
    assert folder.published() == [1, 2]

    keys = {"read": {"mode": "snapshot"}}
    with pytest.raises(FileCameBack, match=r"a\.parquet was gone.*tidegate load"):
        rebuild(folder.pipeline(**keys))
    # What the message says to do.
    load(folder.pipeline(**keys))
    rebuild(folder.pipeline(**keys))

    assert folder.published() == [1, 2]


def test_rebuild_reads_a_file_that_came_back_and_no_load_reads_it_again(folder: Folder) -> None:
    with folder.without("a"):
        load(folder.pipeline(on_changed_file="ignore"))
        rebuild(folder.pipeline())
        assert folder.published() == [2]
    folder.put("c", START + 2.5 * HOUR, 3)

    rebuild(folder.pipeline())
    assert folder.published() == [1, 2]
    load(folder.pipeline())

    assert folder.published() == [1, 2, 3]
    assert list(folder.pipeline().findings()) == []


@pytest.mark.follows("SourceEmptied")
def test_rebuild_of_a_folder_without_any_file_is_refused_unless_that_is_wanted(
    folder: Folder,
) -> None:
    assert folder.published() == [1, 2]
    with folder.without():
        with pytest.raises(SourceEmptied, match="on_changed_file: ignore"):
            rebuild(folder.pipeline())
        assert folder.pipeline().ledger.windows.open() is None

        rebuild(folder.pipeline(on_changed_file="ignore"))
        publish(folder.pipeline())
        assert folder.lake.ids() == {FIRST: []}
    rebuild(folder.pipeline())

    assert folder.published() == [1, 2]


def test_file_that_a_look_found_half_written_stops_no_interval(folder: Folder) -> None:
    whole = folder.put("c", START + 0.5 * HOUR, 3)
    content = whole.read_bytes()
    whole.write_bytes(content[:100])
    os.utime(whole, ((START + 0.5 * HOUR).timestamp(),) * 2)
    look(folder)
    folder.put("c", START + 1.5 * HOUR, 3)

    for number in (1, 2):
        load(folder.pipeline(), hour(number))

    assert folder.published() == [1, 2, 3]


@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_backfill_before_the_start_reads_no_file_that_a_later_window_took_in(
    tmp_path: Path, policy: str
) -> None:
    folder, keys = (
        Folder(SmallLake(tmp_path / "lake")),
        {"start": "latest", "on_changed_file": policy},
    )
    folder.put("a", START - 2.5 * HOUR, 1)
    folder.put("early", START - 3.5 * HOUR, 8)
    folder.pipeline(**keys).instants(NOW)
    folder.put("b", START - 1.5 * HOUR, 2)
    with folder.without("a"):
        load(folder.pipeline(**keys))  # begins after what stands now
    folder.put("e", START + 0.2 * HOUR, 5)
    load(folder.pipeline(**keys))

    for number in (-3, -2, -1, -2):
        load(folder.pipeline(**keys), hour(number))

    assert folder.published() == [1, 2, 5, 8]


@pytest.mark.follows("HistoryChanged")
@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_backfill_before_the_start_takes_nothing_while_a_file_of_it_is_away(
    tmp_path: Path, policy: str
) -> None:
    folder, keys = (
        Folder(SmallLake(tmp_path / "lake")),
        {"start": "latest", "on_changed_file": policy},
    )
    folder.put("a", START - 3.5 * HOUR, 1)
    folder.put("b", START - 3.4 * HOUR, 2)
    folder.put("c", START - 2.5 * HOUR, 3)
    load(folder.pipeline(**keys))
    with folder.without("a"):
        with pytest.raises(HistoryChanged, match="Restore it as it was"):
            load(folder.pipeline(**keys), hour(-3))
        assert not folder.pipeline().ledger.windows.all()

    load(folder.pipeline(**keys), hour(-3))

    assert folder.published() == [1, 2]


@pytest.mark.follows("HistoryChanged")
def test_backfill_of_another_interval_goes_on_without_the_file(tmp_path: Path) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    gone = folder.put("a", START - 3.5 * HOUR, 1)
    folder.put("b", START - 2.5 * HOUR, 2)
    folder.put("c", START - 1.5 * HOUR, 3)
    load(folder.pipeline(**keys))
    gone.unlink()

    load(folder.pipeline(**keys), hour(-2))

    assert folder.published() == [2]


@pytest.mark.parametrize("policy", ["fail", "ignore"])
@pytest.mark.parametrize("found", ["gone", "changed"])
def test_backfill_that_was_taken_in_is_done_again_without_its_file(
    tmp_path: Path, policy: str, found: str
) -> None:
    folder, keys = (
        Folder(SmallLake(tmp_path / "lake")),
        {"start": "latest", "on_changed_file": policy},
    )
    file = folder.put("a", START - 3.5 * HOUR, 1)
    folder.put("b", START - 2.5 * HOUR, 2)
    load(folder.pipeline(**keys))
    load(folder.pipeline(**keys), hour(-3))
    before = folder.published()
    if found == "gone":
        file.unlink()
    else:
        os.utime(file)

    looked = folder.pipeline(**keys).look(Run("sensor", "sensor", hour(-3)), NOW)
    again = load(folder.pipeline(**keys), hour(-3))

    assert (looked.kind, again.windows) == ("replay", (1,))
    assert folder.published() == before == [1]
    (partition,) = folder.pipeline().ledger.partitions.all()
    assert partition.revision == 1


@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_first_interval_is_done_again_once_what_the_start_left_out_is_cleaned_away(
    tmp_path: Path, policy: str
) -> None:
    folder, start = Folder(SmallLake(tmp_path / "lake")), (START + 0.2 * HOUR).isoformat()
    keys: dict[str, Any] = {"start": {"after": start}, "on_changed_file": policy}
    left_out = folder.put("old", START + 0.1 * HOUR, 1)
    folder.put("new", START + 0.5 * HOUR, 2, 3)
    load(folder.pipeline(**keys), hour(1))
    before = folder.published()
    left_out.unlink()

    again = load(folder.pipeline(**keys), hour(1))
    other = load(folder.pipeline(**keys, read={"filter": "id > 2"}), hour(1))

    assert (again.windows, other.windows) == ((1,), (1,))
    assert (before, folder.published()) == ([2, 3], [3])


@pytest.mark.follows("HistoryChanged")
def test_longer_interval_over_the_first_one_takes_nothing_while_a_file_of_it_is_away(
    tmp_path: Path,
) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    folder.put("a", START - 0.5 * HOUR, 1)
    load(folder.pipeline(**keys))
    for number in (1, 2):
        folder.put(f"in {number}", START + (number - 0.5) * HOUR, number + 1)
        load(folder.pipeline(**keys), hour(number))
    longer = DataInterval(hour(0).start, hour(1).end)
    with folder.without("a"), pytest.raises(HistoryChanged, match="Restore it as it was"):
        load(folder.pipeline(**keys), longer)

    load(folder.pipeline(**keys), longer)

    assert folder.published() == [1, 2, 3]


@pytest.mark.follows("StateFileLost")
@pytest.mark.parametrize("lost", ["head", "files"])
def test_backfill_whose_listing_of_the_start_was_lost_is_left_out(
    tmp_path: Path, lost: str
) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    folder.put("a", START - 3.5 * HOUR, 1)
    load(folder.pipeline(**keys))
    first = folder.pipeline().ledger.pipeline.get().first_start
    assert first is not None
    folder.put("b", START + 0.5 * HOUR, 2)
    load(folder.pipeline(**keys))
    number, _, digest = first.id.partition("-")
    name = f"{number}.json" if lost == "head" else f"files/{digest}.json.gz"
    (folder.lake.work / "listings" / name).unlink()

    with pytest.raises(StateFileLost, match="leave the interval out") as refused:
        load(folder.pipeline(**keys), hour(-3))

    assert "read.mode" not in str(refused.value)
    assert [*folder.pipeline(**keys).findings()] == [naming(str(refused.value), "orders")]
    folder.put("c", START + 1.5 * HOUR, 3)
    load(folder.pipeline(**keys))
    assert folder.published() == [2, 3]


def test_backfill_before_the_start_reads_a_file_from_the_future(tmp_path: Path) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    folder.put("a", NOW + 50 * HOUR, 1)
    load(folder.pipeline(**keys), now=START + 0.5 * HOUR)
    folder.put("e", START + 1.5 * HOUR, 5)
    load(folder.pipeline(**keys))

    load(folder.pipeline(**keys), hour(1))

    assert folder.published() == [1, 5]


def test_latest_of_an_empty_folder_is_what_comes_later(tmp_path: Path) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    load(folder.pipeline(**keys))
    for number, name in enumerate("ab", start=1):
        folder.put(name, START + number * HOUR, number)
        load(folder.pipeline(**keys))

    assert folder.published() == [1, 2]


def test_start_stays_where_it_was_when_the_ledger_is_lost_before_the_first_window(
    tmp_path: Path,
) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    folder.put("a", START, 1)
    ledger = folder.lake.root / "ledger.db"
    load(folder.pipeline(**keys))
    folder.put("b", START + HOUR, 2)
    folder.pipeline(**keys).plan(Run("dies", "dies"), NOW)
    for path in folder.lake.root.glob(f"{ledger.name}*"):
        path.unlink()
    folder.pipeline(**keys).restore_ledger()

    shown = folder.pipeline(**keys).looking().preview(Run("looks", "looks"), NOW)
    load(folder.pipeline(**keys))

    parts = [part for split in shown.splits for part in split.sub_splits]
    assert [piece.path for part in parts for piece in part.pieces] == [
        str(folder.root / "b.parquet")
    ]
    assert folder.published() == [2]


@pytest.mark.follows("StateFileDamaged")
def test_start_that_is_damaged_is_removed_and_found_anew(tmp_path: Path) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"start": "latest"}
    folder.put("a", START, 1)
    load(folder.pipeline(**keys))
    (folder.lake.root / "ledger.db").unlink()
    folder.pipeline(**keys).restore_ledger()
    (start,) = folder.lake.work.glob("start-*.json")
    start.write_text("{")
    with pytest.raises(StateFileDamaged, match=r"remove it, and load.*`source\.start` says now"):
        load(folder.pipeline(**keys))
    start.unlink()

    load(folder.pipeline(**keys))

    folder.put("b", START + HOUR, 2)
    load(folder.pipeline(**keys))
    assert folder.published() == [2]


def test_start_of_another_source_is_not_taken_over(tmp_path: Path) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", START, 1)
    load(folder.pipeline(start="latest"))
    (folder.lake.root / "ledger.db").unlink()
    folder.pipeline(start="latest").restore_ledger()
    folder.root = folder.root.rename(folder.lake.root / "other")

    load(folder.pipeline())

    assert folder.published() == [1]


@pytest.mark.parametrize(("start", "ids"), [("after", [3]), ("from", [2, 3])])
def test_start_at_a_time_is_told_by_the_times_of_files(
    tmp_path: Path, start: str, ids: list[int]
) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    for number in (1, 2, 3):
        folder.put(str(number), START + number * HOUR, number)

    load(folder.pipeline(start={start: (START + 2 * HOUR).isoformat()}))

    assert folder.published() == ids
    load(folder.pipeline(start={start: (START + 2 * HOUR).isoformat()}), hour(2))
    assert folder.published() == sorted({*ids, 1})


def test_load_after_a_file_came_and_went_takes_no_window(folder: Folder) -> None:
    folder.put("x", START + HOUR, 9)
    look(folder)
    (folder.root / "x.parquet").unlink()

    load(folder.pipeline())

    assert len(folder.pipeline().ledger.windows.all()) == 1


def test_folder_read_whole_whose_file_is_written_anew_moves_the_time_of_its_windows(
    tmp_path: Path,
) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"read": {"mode": "snapshot"}}
    for number in (1, 2, 3):
        folder.put("all", START + number * HOUR, number)
        load(folder.pipeline(**keys), hour(number + 1))

    windows = folder.pipeline().ledger.windows.all()
    assert [item.window.range.end_inclusive.time for item in windows] == [
        START + number * HOUR for number in (1, 2, 3)
    ]
    assert folder.published() == [3]


def test_look_at_a_half_written_file_stops_no_first_interval(tmp_path: Path) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("b", START - 2 * HOUR, 2)
    half = folder.put("c", START - 0.5 * HOUR, 3)
    half.write_bytes(half.read_bytes()[:100])
    os.utime(half, ((START - 0.5 * HOUR).timestamp(),) * 2)
    look(folder)
    folder.put("c", START + 0.5 * HOUR, 3)

    load(folder.pipeline(), hour(0))
    load(folder.pipeline(), hour(1))

    assert folder.published() == [2, 3]


def test_first_interval_takes_what_stands_and_not_what_a_look_missed(tmp_path: Path) -> None:
    folder = Folder(SmallLake(tmp_path / "lake"))
    folder.put("a", START - 2 * HOUR, 1)
    folder.put("b", START - HOUR, 2)
    with folder.without("b"):
        look(folder)
    folder.put("c", START + 0.5 * HOUR, 3)
    look(folder)

    load(folder.pipeline(), hour(0))

    assert folder.published() == [1, 2]


@pytest.mark.follows("SourceEmptied")
@pytest.mark.parametrize("emptied", [False, True], ids=["not mounted", "emptied"])
def test_folder_read_whole_that_has_no_file_is_refused(tmp_path: Path, *, emptied: bool) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"read": {"mode": "snapshot"}}
    folder.put("a", START - 2 * HOUR, 1)
    load(folder.pipeline(**keys))
    with folder.without(), pytest.raises(SourceEmptied, match="on_changed_file: ignore"):
        load(folder.pipeline(**keys))
    if not emptied:
        folder.put("b", START - HOUR, 2)
        load(folder.pipeline(**keys))

        assert folder.published() == [1, 2]
        return
    (folder.root / "a.parquet").unlink()

    load(folder.pipeline(**keys, on_changed_file="ignore"))
    publish(folder.pipeline())

    assert not any(folder.lake.listed_ids().values())


def test_interval_read_whole_takes_all_that_stands(tmp_path: Path) -> None:
    """Also what came after it: cut by time it would be a state in which the folder never stood."""
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"read": {"mode": "snapshot"}}
    folder.put("a", START - 2 * HOUR, 1)
    folder.put("b", START - HOUR, 2)
    load(folder.pipeline(**keys), DataInterval(START - 24 * HOUR, START))
    with folder.without("b"):
        look(folder, **keys)
    folder.put("c", START + 0.5 * HOUR, 3)
    folder.put("d", START + 1.5 * HOUR, 4)

    load(folder.pipeline(**keys), hour(1))

    assert folder.published() == [1, 2, 3, 4]
    folder.put("d", START + 2.5 * HOUR, 5)
    load(folder.pipeline(**keys), hour(2))
    assert folder.published() == [1, 2, 3, 5]


@pytest.mark.parametrize("looked", ["before", "between"])
def test_look_at_a_folder_read_whole_takes_no_interval_away(tmp_path: Path, looked: str) -> None:
    folder, keys = Folder(SmallLake(tmp_path / "lake")), {"read": {"mode": "snapshot"}}
    folder.put("a", START - 2 * HOUR, 1)
    if looked == "between":
        load(folder.pipeline(**keys), hour(0))
    folder.put("b", START + 3 * HOUR, 2)
    look(folder, **keys)

    for number in (1, 2):
        load(folder.pipeline(**keys), hour(number))

    assert folder.published() == [1, 2]
    windows = folder.pipeline().ledger.windows.all()
    assert windows[-1].window.interval == hour(1), "what stood was read by the first that could"
    assert len(list((folder.lake.work / "listings").glob("*.json"))) <= len(windows) + 1


def test_look_beside_an_open_window_remembers_no_file_for_a_later_one(folder: Folder) -> None:
    keys = {"on_changed_file": "ignore"}
    folder.put("x", START + 0.2 * HOUR, 7)
    first = folder.pipeline(**keys)
    planned = first.plan(Run("one", "one", hour(1)), NOW)
    with folder.without("x"), pytest.raises(WindowOpen):
        load(folder.pipeline(**keys), hour(2), owner="two")
    first.finish_load(planned, NOW, local)
    folder.put("z", START + 2.5 * HOUR, 9)

    for number in (2, 3, 4):
        load(folder.pipeline(**keys), hour(number))

    assert folder.published() == [1, 2, 7, 9]


def test_load_after_a_folder_was_read_whole_without_a_file_reads_it(folder: Folder) -> None:
    keys = {"on_changed_file": "ignore"}
    with folder.without("a"):
        folder.put("c", START + 0.5 * HOUR, 3)
        look(folder, **keys)
        folder.put("d", START + 1.5 * HOUR, 4)
        load(folder.pipeline(read={"mode": "snapshot"}, **keys), hour(1))

    load(folder.pipeline(**keys))

    assert folder.published() == [1, 2, 3, 4]


def test_rebuild_says_whose_rows_it_leaves_out(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.lake.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "4000")
    with folder.without("a"):
        load(folder.pipeline(on_changed_file="ignore"))

        said = CliRunner().invoke(app, ["rebuild", "orders", FIRST])

        assert said.exit_code == 0, said.output
        assert "did not read 1 file that came earlier and is gone: a.parquet;" in said.output
        assert folder.published() == [2]


def test_replay_of_a_rebuild_reads_what_it_read_then(folder: Folder) -> None:
    keys = {"on_changed_file": "ignore"}
    with folder.without("a"):
        load(folder.pipeline(**keys))
        rebuild(folder.pipeline(**keys))
        assert folder.published() == [2]
    load(folder.pipeline(**keys))

    again = folder.pipeline(**keys, read={"filter": "id <> 99"})
    planned = again.replay(3, Run("again", "cli"), NOW)
    again.finish_load(planned, NOW, local)

    assert folder.published() == [2]
    rebuild(folder.pipeline(**keys))
    assert folder.published() == [1, 2]


def test_file_that_was_written_anew_later_keeps_no_interval_from_its_new_files(
    folder: Folder,
) -> None:
    folder.put("a", START + 5 * HOUR, 1)
    folder.put("c", START + 0.5 * HOUR, 3)

    load(folder.pipeline(on_changed_file="ignore"), hour(1))

    assert folder.published() == [1, 2, 3]
