"""Where every file has rows of many partitions, each partition gets one file, and all its rows."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import NOW, SmallLake, known, local
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tidegate.execute import Executor
    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline

FILES = 4
DAYS = 200
FIRST = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that each have five rows of each day, one of them bad, one without an amount."""
    folder = tmp_path_factory.mktemp("many") / "orders"
    folder.mkdir()
    for number in range(FILES):
        rows = range(number * 5 * DAYS, (number + 1) * 5 * DAYS)
        table = pa.table(
            {
                "id": pa.array(rows, pa.int64()),
                "at": [FIRST + timedelta(days=row % DAYS) for row in rows],
                "amount": [None if row % 97 == 0 else row % 11 for row in rows],
            }
        )
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def wanted() -> dict[str, list[int]]:
    """The ids of the rows that are good, by day."""
    found: dict[str, list[int]] = {}
    for row in range(FILES * 5 * DAYS):
        if row % 97 and row % 11:
            found.setdefault(f"dt={FIRST + timedelta(days=row % DAYS):%Y-%m-%d}", []).append(row)
    return found


def pipeline(folder: Path, root: Path, **target: Any) -> Pipeline:
    root.mkdir(exist_ok=True)
    described = {
        "name": "orders",
        "source": {"kind": "files", "path": str(folder), "split": {"max_rows": 600}},
        "event_time": "at",
        "rows": [{"name": "some", "where": "amount > 0", "on_failure": "quarantine"}],
        "target": {"path": str(root / "out"), "partition_by": {"dt": "day(at)"}, **target},
    }
    file = root / "orders.yaml"
    file.write_text(json.dumps(described))
    return open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")


@pytest.fixture(params=["threads", pytest.param("spark", marks=pytest.mark.spark)])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "threads":
        yield LocalExecutor(2)
        return
    from tidegate.execute.spark import SparkExecutor

    yield SparkExecutor(request.getfixturevalue("spark").sparkContext)


def messages(pipeline: Pipeline, planned: PlannedWindow) -> Iterator[CommitMessage]:
    """Read what a plan's sub-splits left, in plan order."""
    for split in read_splits(pipeline.storage, planned.uri):
        for sub_split in split.sub_splits:
            path = layout.message_file(planned.uri, sub_split.id)
            yield CommitMessage.from_text(pipeline.storage.read_bytes(path))


def staged(pipeline: Pipeline, executor: Executor) -> tuple[dict[str, list[int]], Counter[str]]:
    """Load a window; the ids of its rows and the number of its files, by partition."""
    (planned,) = pipeline.plan(Run("run", "cli"), NOW)
    pipeline.stage(planned, executor)
    ids: dict[str, list[int]] = {}
    files: Counter[str] = Counter()
    for message in messages(pipeline, planned):
        for part in message.staged.parts:
            content = pq.ParquetFile(f"{planned.uri}/{part.staged}").read(["id"])
            ids.setdefault(part.partition.path, []).extend(content["id"].to_pylist())
            files[part.partition.path] += 1
    return ids, files


def test_each_partition_gets_one_file_with_all_its_rows(
    folder: Path, tmp_path: Path, executor: Executor
) -> None:
    ids, files = staged(pipeline(folder, tmp_path), executor)

    assert ids == wanted(), "also in the order of the source"
    assert set(files.values()) == {1}


def test_load_publishes_and_counts_what_came_through_the_exchange(
    folder: Path, tmp_path: Path
) -> None:
    loading = pipeline(folder, tmp_path)

    announced = loading.load(Run("run", "cli"), NOW, local)
    published = list(loading.publish_all("cli", NOW))

    bad = FILES * 5 * DAYS - sum(map(len, wanted().values()))
    assert announced.summary is not None
    assert announced.summary.rows_read == FILES * 5 * DAYS
    assert announced.summary.rows_quarantined == bad
    found = {
        path.parent.name: pq.ParquetFile(path).read(["id"])["id"].to_pylist()
        for path in (tmp_path / "out").rglob("*.parquet")
    }
    # Nothing says yet that the last day is over.
    expected = dict(sorted(wanted().items())[:-1])
    assert {item.state for item in published} == {"committed", "pending"}
    assert found == expected
    assert not list(tmp_path.rglob("exchange/**/*.arrow")), "announcing leaves nothing between"


def test_rows_staged_again_after_a_death_have_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    once, again = (pipeline(folder, tmp_path / name) for name in ("once", "again"))

    def hashes(loading: Pipeline, *, dies: bool) -> Mapping[str, str]:
        (planned,) = loading.plan(Run("run", "cli"), NOW)
        splits = read_splits(loading.storage, planned.uri)
        if dies:
            # All that spread are through, and half of those that gather.
            done = [index for index, split in enumerate(splits) if split.stage == 0]
            done += range(len(done), len(done) + (len(splits) - len(done)) // 2)
            stage_some(loading, planned.uri, done)
        loading.stage(planned, LocalExecutor(2))
        found = messages(loading, planned)
        return {part.partition.path: part.sha256 for item in found for part in item.staged.parts}

    assert hashes(again, dies=True) == hashes(once, dies=False)


def stage_some(loading: Pipeline, plan_uri: str, indexes: list[int]) -> None:
    from tidegate.pipeline.load.staging import stage_split

    for index in indexes:
        stage_split(loading.storage, plan_uri, index, "dead")


def test_value_that_no_partition_may_have_is_told_only_of_rows_that_are_kept(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    for number in range(2):
        days = [FIRST + timedelta(days=day) for day in range(100)]
        # The rule puts the row aside whose region no path can name.
        regions = ["none", *(["eu"] * 99)]
        rows = {"id": range(100), "at": days, "amount": [0, *([1] * 99)], "region": regions}
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")
    loading = pipeline(
        folder,
        tmp_path / "p",
        partition_by={"dt": "day(at)", "region": "region"},
        default_partition_name="none",
    )

    ids, files = staged(loading, LocalExecutor(2))

    assert sum(map(len, ids.values())) == 2 * 99
    assert set(files.values()) == {1}


def test_changes_of_small_commits_are_settled_before_they_spread(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path)
    days = dict.fromkeys(range(1, 50), 2)
    for _ in range(3):
        lake.commit(days)
    lake.table.delete("id <= 98", snapshot_properties={"known-at": known(3.5).isoformat()})
    changes = lake.pipeline(
        source={
            "start": "earliest",
            "read": {"mode": "changelog", "columns": ["id", "at", "_change_type"]},
            "split": {"max_rows": 150},
        }
    )

    (planned,) = changes.plan(Run("run", "cli"), NOW)
    stages = {split.stage for split in read_splits(changes.storage, planned.uri)}
    changes.stage(planned, LocalExecutor(2))

    found: Counter[tuple[int, str]] = Counter()
    for message in messages(changes, planned):
        for part in message.staged.parts:
            rows = pq.ParquetFile(f"{planned.uri}/{part.staged}").read(["id", "_change_type"])
            found.update((row["id"], row["_change_type"]) for row in rows.to_pylist())
    expected = Counter((number, "INSERT") for number in range(1, 3 * 98 + 1))
    expected.update((number, "DELETE") for number in range(1, 99))
    assert stages == {0, 1}, "rows meet by partition"
    assert found == expected
