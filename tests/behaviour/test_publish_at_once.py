"""Many partitions published at once by one process: all of them, each once, whatever happens."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from dying import Killed, deaths
from small_lake import NOW, SmallLake, day, load, publish
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

pytestmark = pytest.mark.on_disk

DAYS = range(1, 11)
PROCESS_TIME = {"commit": {"trigger": "process-time"}}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """A lake with ten days that wait, of one row each."""
    made = SmallLake(tmp_path / "lake", keys=PROCESS_TIME)
    made.commit(dict.fromkeys(DAYS, 1))
    load(made.pipeline())
    return made


def wanted(*without: int) -> dict[str, list[int]]:
    return {str(day(number)): [number] for number in DAYS if number not in without}


@dataclass(frozen=True)
class Meeting(LocalStorage):
    """A disk on which the first partition to be changed waits until another one is, too."""

    met: threading.Barrier = field(default_factory=lambda: threading.Barrier(2), compare=False)

    @contextlib.contextmanager
    def lock(self, path: str, holder: str) -> Iterator[None]:
        with super().lock(path, holder):
            if not self.met.broken:
                with contextlib.suppress(threading.BrokenBarrierError):
                    self.met.wait(30)
                    self.met.abort()
            yield


def test_partitions_are_changed_at_once_and_told_in_their_order(lake: SmallLake) -> None:
    storage = Meeting()

    outcomes = publish(lake.pipeline(storage))

    assert storage.met.broken
    assert [item.partition for item in outcomes] == [day(number) for number in DAYS]
    assert {(item.state, item.revision, item.rows) for item in outcomes} == {("committed", 1, 1)}
    assert lake.ids() == wanted()


def test_partition_that_fails_is_told_and_stops_no_other(lake: SmallLake) -> None:
    (lost,) = lake.work.rglob("dt=2026-02-04/*.parquet")
    lost.unlink()

    outcomes = list(lake.pipeline().publish_all("cli", NOW))

    failed = {item.partition: item.error for item in outcomes if item.state != "committed"}
    assert [*failed] == [day(4)]
    assert "StagedFileMissing" in str(lake.pipeline().ledger.partitions.get(day(4)).why)
    assert str(lost) in str(failed[day(4)])
    assert lake.ids() == wanted(4)


def test_command_that_is_killed_at_any_step_is_finished_by_the_next(
    lake: SmallLake, tmp_path: Path
) -> None:
    for storage in deaths(lake, tmp_path / "copy", 17):
        with contextlib.suppress(Killed):
            publish(lake.pipeline(storage), "killed")
        outcomes = [*lake.pipeline().publish_all("killed", NOW)]

        assert [item.error for item in outcomes if item.error] == []
        assert lake.ids() == wanted()
        markers = [json.loads(path.read_bytes()) for path in lake.target.rglob("_SUCCESS")]
        assert {item["revision"] for item in markers} == {1}


def test_two_commands_at_once_publish_each_partition_once(lake: SmallLake) -> None:
    def command(owner: str) -> list[str]:
        return [str(item.error) for item in lake.pipeline().publish_all(owner, NOW) if item.error]

    with ThreadPoolExecutor(2) as threads:
        told = [*threads.map(command, ("one", "other"))]

    # Each says who else is at work on the partition; none says that anything is wrong with it.
    assert all("one" in text or "other" in text for said in told for text in said), told
    publish(lake.pipeline())
    assert lake.ids() == wanted()
    ledger = lake.pipeline().ledger
    assert [ledger.partitions.get(day(number)).revision for number in DAYS] == [1] * len(DAYS)


def test_partition_that_is_named_twice_is_published_once(lake: SmallLake) -> None:
    outcomes = [*lake.pipeline().publish_each([day(2), day(1), day(2)], "cli", NOW)]

    assert [(item.partition, item.state) for item in outcomes] == [
        (day(2), "committed"),
        (day(1), "committed"),
    ]


IN_THREADS = """
import pathlib
import threading


class Noted:
    def __init__(self, path):
        self._path = pathlib.Path(path)

    def commit(self, context):
        (self._path / str(threading.get_ident())).touch()
"""
CUSTOM = {"custom": "in_threads:Noted"}
IN_SPARK = {
    "target": {"metastore": {"through": "spark", "table": "shop.orders"}},
    "commit": {"policies": ["metastore", "success-file"]},
}


def test_policy_of_the_user_runs_in_the_callers_thread(
    lake: SmallLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in_threads.py").write_text(IN_THREADS)
    monkeypatch.syspath_prepend(tmp_path)
    noted = tmp_path / "noted"
    noted.mkdir()
    policies = [{**CUSTOM, "parameters": [str(noted)]}, "success-file"]

    publish(lake.pipeline(commit={"policies": policies}))

    assert {path.name for path in noted.iterdir()} == {str(threading.get_ident())}
    assert lake.ids() == wanted()


@dataclass(frozen=True)
class Threads(LocalStorage):
    """A disk that notes which threads look at files."""

    seen: set[int] = field(default_factory=set, compare=False)

    def length(self, path: str) -> int | None:
        self.seen.add(threading.get_ident())
        return super().length(path)


@pytest.mark.parametrize(
    ("keys", "is_side_by_side"),
    [
        pytest.param({}, True, id="marker"),
        pytest.param({"commit": {"policies": [CUSTOM, "success-file"]}}, False, id="custom"),
        pytest.param(IN_SPARK, False, id="catalog of Spark"),
    ],
)
def test_partitions_are_published_in_threads_if_all_that_is_told_knows_them(
    lake: SmallLake, keys: dict[str, Any], is_side_by_side: bool
) -> None:
    storage = Threads()
    # Before a class or a catalog is asked for, which are not there.
    for staged in lake.work.rglob("dt=*/*.parquet"):
        staged.unlink()

    told = [*lake.pipeline(storage, **keys).publish_all("cli", NOW)]

    assert [item.state for item in told] == ["failed"] * len(DAYS)
    assert (storage.seen != {threading.get_ident()}) == is_side_by_side


@dataclass(frozen=True)
class Opening(LocalStorage):
    """A slow disk that notes how many files with staged rows are opened at once."""

    guard: threading.Lock = field(default_factory=threading.Lock, compare=False)
    at_work: list[str] = field(default_factory=list, compare=False)
    seen: list[int] = field(default_factory=list, compare=False)

    def open_input(self, path: str) -> pa.NativeFile:
        if f"/{layout.STAGED}/" not in path:
            return super().open_input(path)
        with self.guard:
            self.at_work.append(path)
            self.seen.append(len(self.at_work))
        time.sleep(0.01)
        with self.guard:
            self.at_work.remove(path)
        return super().open_input(path)


ONE_OR_TWO = {
    "name": "orders",
    "expectations": [
        {
            "type": "expect_table_row_count_to_be_between",
            "kwargs": {"min_value": 1, "max_value": 2},
            "severity": "critical",
        }
    ],
}
READING: dict[str, dict[str, Any]] = {
    "gate": {"gate": {"suite": "suite.json"}},
    "upsert": {
        "source": {"read": {"mode": "changelog"}},
        "target": {"write": "upsert", "keys": ["id"]},
    },
    "compaction": {"target": {"compaction": {"every": 1}}},
}


@pytest.mark.parametrize("reads", READING)
def test_rows_of_one_partition_are_read_at_a_time(tmp_path: Path, reads: str) -> None:
    lake = SmallLake(tmp_path / "lake", keys={**PROCESS_TIME, **READING[reads]})
    (lake.root / "suite.json").write_text(json.dumps(ONE_OR_TWO))
    for _ in range(2):
        lake.commit(dict.fromkeys(range(1, 5), 1))
        load(lake.pipeline())
    storage = Opening()

    publish(lake.pipeline(storage))

    assert len(storage.seen) >= 8
    assert set(storage.seen) == {1}
    assert lake.ids() == {str(day(number)): [number, number + 4] for number in range(1, 5)}


def asked(root: Path, partitions: int) -> Counter[str]:
    """Return how often the ledger is asked what while partitions of one row each are published."""
    lake = SmallLake(root, keys=PROCESS_TIME)
    lake.commit(dict.fromkeys(range(1, partitions + 1), 1))
    pipeline = lake.pipeline()
    load(pipeline)
    found: Counter[str] = Counter()

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        found[" ".join(statement.split())] += 1

    event.listen(pipeline.ledger.engine, "before_cursor_execute", note)
    outcomes = publish(pipeline)
    assert {item.state for item in outcomes} == {"committed"}
    assert len(outcomes) == partitions
    return found


def test_ledger_is_asked_the_same_few_things_for_each_partition(tmp_path: Path) -> None:
    few, many = asked(tmp_path / "few", 4), asked(tmp_path / "many", 14)

    each = {said: (number - few[said]) / 10 for said, number in many.items()}

    writing = each["BEGIN IMMEDIATE"]
    assert writing <= 8
    assert each["BEGIN"] <= 6
    assert sum(each.values()) <= 57, each
