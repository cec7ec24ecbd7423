"""Where rows are scattered over many partitions, each gets few files, and all its rows."""

from __future__ import annotations

import errno
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import NOW, SmallLake, known, local
from tidegate.errors import StorageFull
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import CommitMessage
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.load.staging import stage_split
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.storage import LocalStorage
from tidegate.storage.calls import OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidegate.execute import Executor
    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline

FILES = 4
DAYS = 40
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


def pipeline(folder: Path, root: Path, on_failure: str = "quarantine", **target: Any) -> Pipeline:
    root.mkdir(exist_ok=True)
    described = {
        "name": "orders",
        "source": {"kind": "files", "path": str(folder), "split": {"max_rows": 120}},
        "event_time": "at",
        "rows": [{"name": "some", "where": "amount > 0", "on_failure": on_failure}],
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


def messages(
    pipeline: Pipeline, planned: PlannedWindow, *, missing_ok: bool = False
) -> Iterator[CommitMessage]:
    """Read what a plan's sub-splits left, in plan order."""
    for split in read_splits(pipeline.storage, planned.uri):
        for sub_split in split.sub_splits:
            path = layout.message_file(planned.uri, sub_split.id)
            if missing_ok and not pipeline.storage.exists(path):
                continue
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


def test_load_publishes_and_counts_what_was_assembled(folder: Path, tmp_path: Path) -> None:
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


def test_row_that_breaks_a_rule_is_counted_once(folder: Path, tmp_path: Path) -> None:
    loading = pipeline(folder, tmp_path, on_failure="warn")

    (planned,) = loading.plan(Run("run", "cli"), NOW)
    loading.stage(planned, LocalExecutor(2))

    hits = sum(item.staged.rule_hits.get("some", 0) for item in messages(loading, planned))
    assert hits == FILES * 5 * DAYS - sum(map(len, wanted().values()))


def test_rows_staged_again_after_a_death_have_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    once, again = (pipeline(folder, tmp_path / name) for name in ("once", "again"))

    def hashes(loading: Pipeline, *, dies: bool) -> Mapping[str, str]:
        (planned,) = loading.plan(Run("run", "cli"), NOW)
        splits = read_splits(loading.storage, planned.uri)
        if dies:
            # All that read are through, and half of those that assemble.
            done = [index for index, split in enumerate(splits) if split.stage == 0]
            done += range(len(done), len(done) + (len(splits) - len(done)) // 2)
            stage_some(loading, planned.uri, done)
        loading.stage(planned, LocalExecutor(2))
        found = messages(loading, planned)
        return {part.partition.path: part.sha256 for item in found for part in item.staged.parts}

    assert hashes(again, dies=True) == hashes(once, dies=False)


def stage_some(loading: Pipeline, plan_uri: str, indexes: list[int]) -> None:
    for index in indexes:
        stage_split(loading.storage, plan_uri, index, "dead")


def test_attempt_that_cannot_force_what_it_hands_on_to_the_disk_leaves_nothing(
    folder: Path, tmp_path: Path
) -> None:
    class Full(OsCalls):
        def sync(self, descriptor: int) -> None:
            if "exchange" in Path(f"/proc/self/fd/{descriptor}").readlink().parts:
                raise OSError(errno.ENOSPC, "full")
            super().sync(descriptor)

    (planned,) = pipeline(folder, tmp_path).plan(Run("run", "cli"), NOW)

    with pytest.raises(StorageFull):
        stage_split(LocalStorage(Full()), planned.uri, 0, "w1")

    left = [path for path in Path(planned.uri).rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"plan.json", "splits.jsonl"}


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


@pytest.mark.on_disk
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
    changes.stage(planned, LocalExecutor(2))

    assert sum(len(item.staged.parts) for item in messages(changes, planned)) == 49
    found: Counter[tuple[int, str]] = Counter()
    for message in messages(changes, planned):
        for part in message.staged.parts:
            rows = pq.ParquetFile(f"{planned.uri}/{part.staged}").read(["id", "_change_type"])
            found.update((row["id"], row["_change_type"]) for row in rows.to_pylist())
    expected = Counter((number, "INSERT") for number in range(1, 3 * 98 + 1))
    expected.update((number, "DELETE") for number in range(1, 99))
    assert found == expected


def test_small_files_of_many_folders_keep_the_values_of_their_own_paths(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    for number in range(6):
        place = folder / f"shop={number // 2}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [number]}), place / f"{number}.parquet")
    described = {
        "name": "orders",
        "source": {
            "kind": "files",
            "path": str(folder),
            "partition_by": {"shop": "int"},
            "read": {"filter": "id >= 0"},
        },
        "target": {"path": str(tmp_path / "out"), "partition_by": {"shop": "shop"}},
        "commit": {"trigger": "process-time"},
    }
    file = tmp_path / "orders.yaml"
    file.write_text(json.dumps(described))
    loading = open_pipeline(file, ledger=f"sqlite:///{tmp_path}/ledger.db")

    ids, _ = staged(loading, LocalExecutor(2))

    assert ids == {"shop=0": [0, 1], "shop=1": [2, 3], "shop=2": [4, 5]}


# Keys whose values no metadata tells


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.dictionary(pa.int32(), pa.string())),
        ("note", pa.large_string()),
        ("tags", pa.list_(pa.string())),
    ]
)


def shops(folder: Path, of_row: Callable[[int], int], rows: int = 8_000, files: int = 4) -> Path:
    """Files with rows of shops, in no order; gives their folder."""
    folder.mkdir()
    for file in range(files):
        ids = range(file * rows // files, (file + 1) * rows // files)
        table = pa.table(
            {
                "id": list(ids),
                "shop": pa.array([f"s{of_row(row)}" for row in ids]).dictionary_encode(),
                "note": [None if row % 7 == 0 else "x" * (row % 50) for row in ids],
                "tags": [[str(row)] * (row % 3) for row in ids],
            },
            schema=SCHEMA,
        )
        pq.write_table(table, folder / f"{file}.parquet", row_group_size=700)
    return folder


def by_shop(
    folder: Path, root: Path, max_rows: int = 1_000, file_size: str = "128 MiB"
) -> Pipeline:
    root.mkdir()
    described = {
        "name": "shops",
        "source": {"kind": "files", "path": str(folder), "split": {"max_rows": max_rows}},
        "target": {
            "path": str(root / "out"),
            "partition_by": {"shop": "shop"},
            "rolling": {"file_size": file_size},
        },
        "commit": {"trigger": "process-time"},
    }
    file = root / "shops.yaml"
    file.write_text(json.dumps(described))
    return open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")


@pytest.mark.parametrize("count", [84, 400, 2_000])
def test_each_value_of_a_key_gets_one_file(tmp_path: Path, executor: Executor, count: int) -> None:
    folder = shops(tmp_path / "raw", lambda row: row * 7919 % count)

    ids, files = staged(by_shop(folder, tmp_path / "p"), executor)

    expected: dict[str, list[int]] = {}
    for row in range(8_000):
        expected.setdefault(f"shop=s{row * 7919 % count}", []).append(row)
    assert ids == expected, "also in the order of the source"
    assert set(files.values()) == {1}


def test_all_columns_of_assembled_rows_are_as_they_were_read(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row * 7919 % 100)
    loading = by_shop(folder, tmp_path / "p")

    (planned,) = loading.plan(Run("run", "cli"), NOW)
    loading.stage(planned, LocalExecutor(2))

    def rows(table: pa.Table) -> list[dict[str, Any]]:
        return sorted(table.to_pylist(), key=lambda row: row["id"])

    raw = pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet")))
    out = []
    for message in messages(loading, planned):
        for part in message.staged.parts:
            content = pq.ParquetFile(f"{planned.uri}/{part.staged}").read()
            shop = pa.array([dict(part.partition.values)["shop"]] * part.rows)
            out.append(content.append_column("shop", shop))
    assert len(out) == 100
    assert rows(pa.concat_tables(out)) == rows(raw)


def test_partition_that_has_most_rows_gets_files_where_they_are_read(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 200 if row % 4 == 0 else 999)
    loading = by_shop(folder, tmp_path / "p", file_size="64 KiB")

    (planned,) = loading.plan(Run("run", "cli"), NOW)
    loading.stage(planned, LocalExecutor(2))

    splits = read_splits(loading.storage, planned.uri)
    reading = {part.id for split in splits if not split.stage for part in split.sub_splits}
    large = [
        (message.sub_split in reading, part.rows)
        for message in messages(loading, planned)
        for part in message.staged.parts
        if part.partition.path == "shop=s999"
    ]
    assert sum(rows for _, rows in large) == 6_000
    assert len(large) > 1
    assert all(is_read for is_read, _ in large)


def test_few_values_of_a_key_are_not_handed_on(tmp_path: Path) -> None:
    folder = shops(tmp_path / "raw", lambda row: row % 31)
    loading = by_shop(folder, tmp_path / "p")

    (planned,) = loading.plan(Run("run", "cli"), NOW)
    loading.stage(planned, LocalExecutor(2))

    assert all(message.spread is None for message in messages(loading, planned))
    assert not Path(planned.uri, "exchange").exists()


@pytest.mark.parametrize("lost", ["part file", "handed on", "assembled"])
def test_lost_files_are_staged_again_with_no_row_twice(tmp_path: Path, lost: str) -> None:
    # Two of three rows are of a shop whose files are written where they are read.
    folder = shops(tmp_path / "raw", lambda row: row % 120 if row % 3 == 0 else 999)
    loading = by_shop(folder, tmp_path / "p", file_size="64 KiB")
    (planned,) = loading.plan(Run("run", "cli"), NOW)
    splits = read_splits(loading.storage, planned.uri)
    assembling = {part.id for it in splits if it.stage for part in it.sub_splits}
    if lost == "handed on":
        stage_some(loading, planned.uri, [n for n, it in enumerate(splits) if not it.stage])
    else:
        loading.stage(planned, LocalExecutor(2))
    done = list(messages(loading, planned, missing_ok=True))
    gone = {
        "part file": next(
            item.staged.parts[0].staged for item in done if item.sub_split not in assembling
        ),
        "handed on": next(item.spread.path for item in done if item.spread),
        "assembled": next(
            (item.staged.parts[0].staged for item in done if item.sub_split in assembling), ""
        ),
    }[lost]
    Path(planned.uri, gone).unlink()

    ids, _ = staged(loading, LocalExecutor(2))

    expected: dict[str, list[int]] = {}
    for row in range(8_000):
        shop = row % 120 if row % 3 == 0 else 999
        expected.setdefault(f"shop=s{shop}", []).append(row)
    assert {shop: sorted(found) for shop, found in ids.items()} == expected


def test_rows_that_come_in_order_are_handed_on_where_files_would_be_small(tmp_path: Path) -> None:
    # Each batch has rows of few shops, each sub-split of many, and each file of all.
    folder = shops(tmp_path / "raw", lambda row: row % 2_000 // 20)
    loading = by_shop(folder, tmp_path / "p", max_rows=2_000)

    _, files = staged(loading, LocalExecutor(2))

    assert set(files.values()) == {1}
    assert len(files) == 100
