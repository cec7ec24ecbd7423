"""A folder whose known files changed, or whose listings were lost: what is printed ends well."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import DAY, DAY_1, NOW, SmallLake, load, local, publish, published_ids
from tidegate.errors import SourceRewritten, StateFileDamaged, StateFileLost, WorkBehind
from tidegate.errors.commands import naming
from tidegate.model.instant import DataInterval
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.pipeline import Pipeline

DAYS = 3


class Folder:
    """Files of one day each, and a pipeline that read those of the first days."""

    def __init__(self, lake: SmallLake) -> None:
        self.lake = lake
        self.root = lake.root / "landing"
        self.root.mkdir()

    def put(self, day: int, *ids: int) -> Path:
        at = [DAY_1 + DAY * (day - 1) + timedelta(minutes=row) for row in range(len(ids))]
        times = pa.array(at, pa.timestamp("us", "UTC"))
        path = self.root / f"{day}.parquet"
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "at": times}), path)
        return path

    def pipeline(self, **source: Any) -> Pipeline:
        self.lake.source = {"kind": "files", "path": str(self.root), **source}
        return self.lake.pipeline()

    def rows(self) -> dict[str, list[int]]:
        """Return the ids that stand in the folder, by the day that they belong to."""
        ids: dict[str, list[int]] = {}
        for path in sorted(self.root.iterdir()):
            for row in pq.read_table(path).to_pylist():
                ids.setdefault(f"dt={row['at']:%Y-%m-%d}", []).append(row["id"])
        return {name: sorted(each) for name, each in ids.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(SmallLake(tmp_path / "lake"))
    for day in range(1, DAYS + 1):
        folder.put(day, day * 10, day * 10 + 1)
    pipeline = folder.pipeline()
    load(pipeline)
    publish(pipeline)
    return folder


def check_ends_well(folder: Folder) -> None:
    days = {name: ids for name, ids in folder.rows().items() if name < f"dt=2026-02-0{DAYS}"}
    assert {name: published_ids(folder.lake.target)[name] for name in days} == days
    listed = folder.lake.listed_ids()
    assert {name: listed[name] for name in days} == days


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("policy", ["fail", "ignore"])
def test_partitions_of_a_changed_file_are_rebuilt_from_what_stands_there_now(
    folder: Folder, policy: str
) -> None:
    folder.put(1, 10, 12, 13)
    folder.put(DAYS + 1, 40)
    with pytest.raises(SourceRewritten, match=r"tidegate rebuild.*ignore.*tidegate load"):
        load(folder.pipeline())

    if policy == "ignore":
        load(folder.pipeline(on_changed_file="ignore"))
    pipeline = folder.pipeline(on_changed_file=policy)
    rebuild(pipeline, "dt=2026-02-01")
    load(folder.pipeline(on_changed_file="fail"))
    publish(pipeline)

    check_ends_well(folder)
    assert list(pipeline.findings()) == []
    assert load(folder.pipeline()).windows == ()


@pytest.mark.follows("SourceRewritten")
@pytest.mark.parametrize("replayed", [False, True], ids=["rebuilt", "replayed"])
def test_partition_that_a_changed_file_has_rows_of_now_is_rebuilt(
    folder: Folder, *, replayed: bool
) -> None:
    at = [DAY_1, DAY_1 + DAY * (DAYS + 1)]
    rows = pa.table({"id": [10, 55], "at": pa.array(at, pa.timestamp("us", "UTC"))})
    pq.write_table(rows, folder.root / "1.parquet")
    with pytest.raises(SourceRewritten, match=rf"dt=2026-02-01 dt=2026-02-0{DAYS + 2}`"):
        load(folder.pipeline())

    folder.lake.keys = {"commit": {"trigger": "process-time"}}
    pipeline = folder.pipeline(on_changed_file="ignore")
    load(pipeline)
    rebuild(pipeline, "dt=2026-02-01")
    rebuild(pipeline, f"dt=2026-02-0{DAYS + 2}")
    if replayed:
        newest = pipeline.ledger.windows.all()[-1].window.sequence
        pipeline.finish_load(pipeline.replay(newest, Run("replay", "cli"), NOW), NOW, local)
    publish(pipeline)

    assert published_ids(folder.lake.target) == folder.lake.listed_ids() == folder.rows()
    assert list(pipeline.findings()) == []


def rebuild(pipeline: Pipeline, partition: str) -> None:
    planned = pipeline.rebuild([pipeline.parse_partition(partition)], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


@pytest.mark.on_disk
@pytest.mark.follows("StateFileLost", "StateFileDamaged")
@pytest.mark.parametrize("scheduled", [True, False])
@pytest.mark.parametrize("lost", ["all", "head", "files", "head damaged", "files damaged"])
def test_folder_whose_listings_were_lost_is_read_whole_once(
    folder: Folder, lost: str, *, scheduled: bool
) -> None:
    listings = folder.lake.work / "listings"
    paths = listings.rglob("*.json.gz") if "files" in lost else listings.glob("*.json")
    if lost == "all":
        shutil.rmtree(listings)
    else:
        for path in paths:
            content = path.read_bytes()[:20]
            path.unlink()
            if "damaged" in lost:
                path.write_bytes(content)
    folder.put(DAYS + 1, 40)
    error = StateFileDamaged if "damaged" in lost else StateFileLost
    with pytest.raises(error, match=str(listings)) as refused:
        load(folder.pipeline())
    assert [*folder.pipeline().findings()] == [naming(str(refused.value), "orders")]

    if error is StateFileDamaged:
        Path(refused.value.path).rename(folder.lake.root / "away")
        with pytest.raises(StateFileLost) as refused:
            load(folder.pipeline())
    assert "`read.mode: snapshot`" in str(refused.value)
    state = folder.pipeline().checkpoint_state(NOW)
    assert state is not None
    assert "PIPELINE" not in state.detail
    assert ("`tidegate load orders`" in state.detail) == ("PIPELINE" in str(refused.value))
    by_interval = DataInterval(NOW - DAY, NOW + 1000 * DAY)
    load(folder.pipeline(read={"mode": "snapshot"}), by_interval if scheduled else None)
    publish(folder.pipeline(read={"mode": "snapshot"}))
    check_ends_well(folder)

    folder.put(DAYS + 2, 50, 51)
    pipeline = folder.pipeline()
    load(pipeline)
    publish(pipeline)
    check_ends_well(folder)
    assert published_ids(folder.lake.target)["dt=2026-02-04"] == [40]
    assert [*folder.pipeline().findings()] == []


@pytest.mark.follows("StateFileLost")
def test_folder_with_a_start_whose_listing_was_lost_is_read_whole_with_what_came_before(
    tmp_path: Path,
) -> None:
    folder = Folder(SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}}))
    folder.put(1, 10)
    load(folder.pipeline(start="latest"))
    folder.put(2, 20)
    load(folder.pipeline(start="latest"))
    (folder.lake.work / "listings" / "000002.json").unlink()
    folder.put(3, 30)
    with pytest.raises(StateFileLost, match=r"remove `source\.start`.*change both back") as lost:
        load(folder.pipeline(start="latest"))
    assert [*folder.pipeline(start="latest").findings()] == [naming(str(lost.value), "orders")]

    load(folder.pipeline(read={"mode": "snapshot"}))
    folder.put(4, 40)
    load(folder.pipeline(start="latest"))
    publish(folder.pipeline(start="latest"))

    assert published_ids(folder.lake.target) == folder.rows()
    assert [*folder.pipeline(start="latest").findings()] == []


def test_folder_that_is_read_whole_misses_no_listing(folder: Folder) -> None:
    shutil.rmtree(folder.lake.work / "listings")

    assert [*folder.pipeline(read={"mode": "snapshot"}).findings()] == []


def test_replay_of_a_window_whose_listing_was_lost_says_what_stands_in_its_place(
    folder: Folder,
) -> None:
    shutil.rmtree(folder.lake.work / "listings")
    folder.put(DAYS + 1, 40)
    ids = published_ids(folder.lake.target)

    with pytest.raises(StateFileLost, match=r"read\.mode: snapshot"):
        folder.pipeline().replay(1, Run("again", "cli"), NOW)
    load(folder.pipeline(read={"mode": "snapshot"}))
    with pytest.raises(StateFileLost, match=r"leave window 1 as it is: window 2 read everything"):
        folder.pipeline().replay(1, Run("again", "cli"), NOW)

    assert published_ids(folder.lake.target) == folder.lake.listed_ids() == ids


def test_replay_of_a_window_whose_listing_alone_was_lost_says_that_nothing_else_tells(
    folder: Folder,
) -> None:
    folder.put(DAYS + 1, 40)
    load(folder.pipeline())
    (folder.lake.work / "listings" / "000001.json").unlink()

    with pytest.raises(StateFileLost, match=r"start a new pipeline.*what window 1 read"):
        folder.pipeline().replay(1, Run("again", "cli"), NOW)


STEPS: dict[str, Callable[[Pipeline], object]] = {
    "load": load,
    "replay": lambda pipeline: pipeline.replay(2, Run("again", "cli"), NOW),
    "rebuild": lambda pipeline: rebuild(pipeline, "dt=2026-02-01"),
    "preview": lambda pipeline: pipeline.looking().preview(Run("look", "cli"), NOW),
    "restoration": lambda pipeline: pipeline.restore_ledger(),
}


@pytest.mark.follows("WorkBehind")
@pytest.mark.parametrize("remedy", ["newer copy", "new pipeline"])
def test_work_directory_of_yesterday_whose_windows_nothing_tells_is_told_at_once(
    folder: Folder, remedy: str
) -> None:
    shutil.copytree(folder.lake.work, folder.lake.root / "yesterday")
    for day in (DAYS + 1, DAYS + 2):
        folder.put(day, day * 10)
        load(folder.pipeline())
        publish(folder.pipeline())
    folder.lake.work.rename(folder.lake.root / "today")
    (folder.lake.root / "yesterday").rename(folder.lake.work)
    folder.put(DAYS + 3, (DAYS + 3) * 10)
    ids = published_ids(folder.lake.target)

    said = {}
    for name, step in STEPS.items():
        with pytest.raises(WorkBehind, match="Restore it from a newer copy") as refused:
            step(folder.pipeline())
        said[name] = str(refused.value)
    (found,) = folder.pipeline().findings()
    state = folder.pipeline().checkpoint_state(NOW)
    assert state is not None
    assert {*said.values(), state.detail} == {found}
    assert published_ids(folder.lake.target) == folder.lake.listed_ids() == ids

    if remedy == "newer copy":
        shutil.rmtree(folder.lake.work)
        (folder.lake.root / "today").rename(folder.lake.work)
        pipeline, target = folder.pipeline(), folder.lake.target
    else:
        target = folder.lake.root / "published" / "anew"
        pipeline = folder.lake.pipeline(name="anew", target={"path": str(target)})
    load(pipeline)
    publish(pipeline)
    assert list(pipeline.findings()) == []
    rows = folder.rows()
    assert published_ids(target) == {name: rows[name] for name in sorted(rows)[:-2]}


def test_publish_beside_a_work_directory_of_yesterday_tells_no_circle(folder: Folder) -> None:
    shutil.copytree(folder.lake.work, folder.lake.root / "yesterday")
    for day in (DAYS + 1, DAYS + 2):
        folder.put(day, day * 10)
        load(folder.pipeline())
        publish(folder.pipeline())
    shutil.rmtree(folder.lake.work)
    (folder.lake.root / "yesterday").rename(folder.lake.work)
    load(folder.pipeline(read={"mode": "snapshot"}))

    outcomes = folder.pipeline().publish_all("cli", NOW)

    failed = [item.error for item in outcomes if item.error]
    assert failed
    assert failed == [*folder.pipeline().findings()] * len(failed)


@pytest.mark.follows("StateFileLost")
def test_folder_whose_listing_was_lost_and_that_has_nothing_new_goes_on(folder: Folder) -> None:
    for path in (folder.lake.work / "listings").rglob("*.json.gz"):
        path.unlink()
    with pytest.raises(StateFileLost, match=r"read\.mode: snapshot"):
        load(folder.pipeline())

    load(folder.pipeline(read={"mode": "snapshot"}))
    folder.put(DAYS + 1, 40)
    load(folder.pipeline())
    publish(folder.pipeline())

    check_ends_well(folder)
