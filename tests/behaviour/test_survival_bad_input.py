"""Bad input: one clear typed error that names what, where and remedy, and nothing moved."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import NOW, SmallLake, day, later, load, local, publish
from tidegate import read_committed
from tidegate.config import OWNER_FILE
from tidegate.errors import (
    ConfigInvalid,
    ListedFileChanged,
    PartitionValueInvalid,
    PipelineChanged,
    SchemaIncompatible,
    SourceFileDamaged,
    SourceFileGone,
    SourceNotFound,
    SourceReadTwice,
    StorageFull,
    SuiteInvalid,
    TargetOwned,
    TerminalError,
    WorkElsewhere,
)
from tidegate.model.run import Run
from tidegate.model.watermark import Reason
from tidegate.pipeline import open_pipeline
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.pipeline import Pipeline

HOUR = timedelta(hours=1)
NOBODY = 65534
MEMORY = Path("/dev/shm")


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@contextmanager
def nothing_moves(lake: SmallLake) -> Iterator[None]:
    """Compare checkpoint, watermark, seals, partitions and the table before and after."""
    before = standing(lake), lake.stamps()
    yield
    after = lake.stamps()
    if OWNER_FILE not in before[1]:
        # A first load says whose the target is before it looks at the source.
        after.pop(OWNER_FILE, None)
    assert (standing(lake), after) == before


def standing(lake: SmallLake) -> dict[str, Any]:
    pipeline = lake.pipeline()
    state = pipeline.ledger.pipeline.find()
    return {
        "checkpoint": state.checkpoint if state else None,
        "watermark": state.watermark if state else None,
        "sealed": [item.window.sequence for item in pipeline.ledger.windows.all() if item.sealed],
        "revisions": [
            (item.partition, item.revision, item.rows) for item in pipeline.ledger.partitions.all()
        ],
        "seals": sorted(str(path) for path in lake.work.rglob("sealed*.json")),
    }


def grown(lake: SmallLake) -> Pipeline:
    """Publish one day, and leave a second commit to read."""
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    lake.commit({1: 2, 2: 2})
    return pipeline


def data_files(lake: SmallLake) -> list[Path]:
    tasks = lake.table.scan().plan_files()
    return [Path(task.file.file_path.removeprefix("file://")) for task in tasks]


def test_unknown_table_is_named(lake: SmallLake) -> None:
    grown(lake)
    other = {"name": "others", "target": {"path": str(lake.root / "published" / "others")}}

    with nothing_moves(lake), pytest.raises(SourceNotFound, match=r"raw\.others.*`source`"):
        load(lake.pipeline(source={"table": "raw.others"}, **other))


@pytest.mark.follows("SourceNotFound")
def test_missing_metadata_file_is_named(lake: SmallLake) -> None:
    gone = lake.root / "raw" / "nowhere" / "metadata" / "v1.metadata.json"
    source = {"kind": "iceberg", "metadata": str(gone)}
    lake.source = source

    with nothing_moves(lake), pytest.raises(SourceNotFound, match=r"v1\.metadata\.json"):
        load(lake.pipeline())

    # What the message says to do.
    ids = lake.commit({1: 3, 2: 1})[:3]
    lake.source["metadata"] = lake.table.metadata_location.removeprefix("file://")
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_data_file_deleted_after_planning_is_named(lake: SmallLake) -> None:
    pipeline = grown(lake)
    planned = pipeline.plan(Run("a", "cli"), NOW)
    newest = max(data_files(lake), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()

    with nothing_moves(lake), pytest.raises(SourceFileGone, match=newest.name) as refused:
        pipeline.finish_load(planned, NOW, local)

    assert "tidegate rebuild" in str(refused.value)
    assert isinstance(refused.value, TerminalError)


@pytest.mark.parametrize("left", [0, 10, 0.5, -1], ids=["all", "but 10 bytes", "half", "one byte"])
def test_truncated_parquet_file_is_named(lake: SmallLake, left: float) -> None:
    pipeline = grown(lake)
    newest = max(data_files(lake), key=lambda path: path.stat().st_mtime_ns)
    content = newest.read_bytes()
    size = int(len(content) * left) if isinstance(left, float) else left
    newest.write_bytes(content[:size])

    with nothing_moves(lake), pytest.raises(SourceFileDamaged, match=newest.name):
        load(pipeline)


def test_file_with_other_bytes_in_the_middle_is_named(lake: SmallLake) -> None:
    pipeline = grown(lake)
    newest = max(data_files(lake), key=lambda path: path.stat().st_mtime_ns)
    content = bytearray(newest.read_bytes())
    content[4:80] = bytes(76)
    newest.write_bytes(content)

    with nothing_moves(lake), pytest.raises(SourceFileDamaged, match=newest.name):
        load(pipeline)


@pytest.fixture
def drop(lake: SmallLake) -> Path:
    """A directory of plain files as the lake's source."""
    folder = lake.root / "drop"
    folder.mkdir()
    lake.source = {"kind": "files", "path": str(folder)}
    return folder


def rows(numbers: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    at = [datetime(2026, 2, 1, 1, tzinfo=UTC), datetime(2026, 2, 2, 1, tzinfo=UTC)]
    stamps = pa.array(at, pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(numbers, kind or pa.int64()), "at": stamps})


@pytest.mark.follows("SchemaIncompatible")
def test_column_of_an_incompatible_type_is_named(lake: SmallLake, drop: Path) -> None:
    pq.write_table(rows([1, 2]), drop / "a.parquet")
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    pq.write_table(rows(["three", "four"], pa.string()), drop / "b.parquet")

    with nothing_moves(lake), pytest.raises(SchemaIncompatible, match=r"b\.parquet.*'id'"):
        load(pipeline)

    # What the message says to do.
    other = lake.root / "other"
    other.mkdir()
    (drop / "b.parquet").rename(other / "b.parquet")
    anew = {"path": str(lake.root / "published" / "anew")}
    pipeline = lake.pipeline(name="anew", source={"path": str(other)}, target=anew)
    load(pipeline)
    publish(pipeline)
    found = read_committed(lake.root / "published" / "anew").to_table()
    assert found["id"].to_pylist() == ["three"]


@pytest.mark.follows("SchemaIncompatible")
def test_column_that_a_file_has_twice_is_named(lake: SmallLake, drop: Path) -> None:
    twice = rows([1, 2]).append_column("id", pa.array([5, 6]))
    pq.write_table(twice, drop / "a.parquet")

    with pytest.raises(SchemaIncompatible, match=r"'id': expected one column .*, found 2"):
        load(lake.pipeline())

    pq.write_table(rows([1, 2]), drop / "a.parquet")
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": [1]}


@pytest.mark.follows("SchemaIncompatible")
def test_column_that_is_changed_in_the_source_is_read(lake: SmallLake, drop: Path) -> None:
    pq.write_table(rows([1, 2]), drop / "a.parquet")
    pipeline = lake.pipeline()
    load(pipeline)
    pq.write_table(rows(["three", "four"], pa.string()), drop / "b.parquet")
    with pytest.raises(SchemaIncompatible):
        pipeline.plan(Run("run", "cli"), NOW)

    pq.write_table(rows([3, 4]), drop / "b.parquet")
    load(pipeline)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": [1, 3]}


@pytest.mark.follows("ListedFileChanged")
@pytest.mark.parametrize("step", ["replay", "stage"])
def test_file_that_is_written_again_with_the_same_length_is_not_read_in_its_place(
    lake: SmallLake, drop: Path, step: str
) -> None:
    pq.write_table(rows([1, 2]), drop / "a.parquet")
    kept = drop / "a.parquet"
    pipeline = lake.pipeline()
    if step == "replay":
        load(pipeline)
        publish(pipeline)
        pipeline = lake.pipeline(source={"split": {"max_rows": 1}})
    else:
        pipeline.plan(Run("first", "cli"), NOW)
    status, content = kept.stat(), kept.read_bytes()
    pq.write_table(rows([7, 8]), kept)
    assert kept.stat().st_size == status.st_size

    with pytest.raises(ListedFileChanged, match="written at"):
        again(pipeline, step)

    # What the message says to do.
    kept.write_bytes(content)
    os.utime(kept, ns=(status.st_atime_ns, status.st_mtime_ns))
    again(pipeline, step)
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": [1]}


def again(pipeline: Pipeline, step: str) -> None:
    if step == "stage":
        load(pipeline)
    else:
        pipeline.finish_load(pipeline.replay(1, Run("again", "cli"), NOW), NOW, local)


@pytest.mark.follows("SourceReadTwice")
def test_link_that_leads_back_is_named_and_read_around(lake: SmallLake, drop: Path) -> None:
    pq.write_table(rows([1, 2]), drop / "a.parquet")
    (drop / "loop").symlink_to(drop)
    with nothing_moves(lake), pytest.raises(SourceReadTwice, match=r"loop is a link to .*/drop"):
        load(lake.pipeline())

    load(lake.pipeline(source={"on_bad_path": "skip"}))
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": [1]}


@pytest.mark.follows("PartitionValueInvalid")
def test_partition_value_that_does_not_parse_is_named(lake: SmallLake, drop: Path) -> None:
    lake.source["partition_by"] = {"region": "int"}
    (drop / "region=1").mkdir()
    pq.write_table(rows([1, 2]), drop / "region=1" / "a.parquet")
    pipeline = lake.pipeline()
    load(pipeline)
    (drop / "region=west").mkdir()
    pq.write_table(rows([3, 4]), drop / "region=west" / "b.parquet")

    with nothing_moves(lake), pytest.raises(PartitionValueInvalid, match="west"):
        load(pipeline)

    # What the message says to do.
    (drop / "region=west").rename(drop / "region=2")
    load(pipeline)
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": [1, 3]}


AS_NOBODY = """
import os, sys
from datetime import datetime
from small_lake import load, publish
from tidegate.errors import TidegateError
from tidegate.pipeline import open_pipeline
from tidegate.storage import LocalStorage, OsCalls
warm, real, ledger = sys.argv[1:]
now = datetime.fromisoformat("{now}")
# Once as root: nobody may be unable to import what a step loads when it is first used.
first = open_pipeline(warm, ledger="sqlite:///" + warm + ".db")
load(first, now=now)
publish(first, now=now)
os.setgid({user}); os.setuid({user})
pipeline = open_pipeline(real, ledger=ledger)
try:
    load(pipeline, now=now)
    for outcome in pipeline.publish_all("cli", now):
        if outcome.error: print("failed:", outcome.error)
except TidegateError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def open_lake() -> Iterator[SmallLake]:
    """A lake that other users can reach; pytest keeps its directories private."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield SmallLake(Path(made) / "lake")


@pytest.mark.on_disk
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("place", ["published", "published/orders"])
def test_unwritable_target_is_denied(open_lake: SmallLake, place: str) -> None:
    lake = open_lake
    lake.commit({1: 3, 2: 1})
    lake.target.mkdir(parents=True)
    lake.work.mkdir()
    os.chown(lake.root, NOBODY, NOBODY)
    if place == "published/orders":
        os.chown(lake.work, NOBODY, NOBODY)
    tests = Path(__file__).parent.parent
    warm = lake.file("warm", name="warm", target={"path": str(lake.root / "warm" / "orders")})
    (lake.root / "warm").mkdir()

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            AS_NOBODY.format(user=NOBODY, now=NOW.isoformat()),
            str(warm),
            str(lake.file()),
            f"sqlite:///{lake.root}/ledger.db",
        ],
        env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{tests}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "access denied" in done.stdout, done.stdout + done.stderr
    assert str(lake.work if place == "published" else lake.target) in done.stdout
    assert list(lake.target.iterdir()) == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={size}", "tidegate-test"]
    mounted = subprocess.run(
        ["mount", *options, str(folder)], capture_output=True, check=False
    ).returncode
    if mounted != 0:
        pytest.skip("this machine lets us mount nothing")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.on_disk
@pytest.mark.follows("StorageFull")
def test_full_disk_is_transient_and_the_same_load_ends_once_space_is_free(lake: SmallLake) -> None:
    ids = [number for _ in range(4) for number in lake.commit({1: 1000, 2: 1})[:-1]]
    lake.keys = {"source": {"split": {"target_size": "1KiB", "open_cost": "1B", "max_rows": 200}}}
    with small_disk(lake.root / "published", "4m"):
        pipeline = lake.pipeline()
        ballast = lake.root / "published" / "ballast"
        ballast.write_bytes(bytes(3_900_000))

        with nothing_moves(lake), pytest.raises(StorageFull, match="Free space"):
            load(pipeline)
        ballast.unlink()
        load(pipeline)
        publish(pipeline)

        assert lake.ids() == {"dt=2026-02-01": ids}


@dataclass(frozen=True)
class FillingCalls(OsCalls):
    """System calls of a disk with so many bytes left; for machines that let us mount nothing."""

    left: list[int] = field(default_factory=lambda: [0], hash=False)

    def write(self, descriptor: int, content: memoryview | bytes) -> int:
        if self.left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        some = bytes(content[: self.left[0]])
        self.left[0] -= len(some)
        return super().write(descriptor, some)


@pytest.mark.on_disk
@pytest.mark.follows("StorageFull")
@pytest.mark.parametrize("space", [0, 1000, 10_000, 15_000, 20_000])
def test_load_on_a_disk_of_any_size_is_finished_once_there_is_space(
    lake: SmallLake, space: int
) -> None:
    ids = lake.commit({1: 1000, 2: 1})[:-1]
    lake.keys = {"source": {"split": {"target_size": "1KiB", "open_cost": "1B", "max_rows": 200}}}
    calls = FillingCalls(left=[space])
    pipeline = lake.pipeline(LocalStorage(calls))

    with nothing_moves(lake), pytest.raises(StorageFull, match="Free space"):
        load(pipeline)
    assert not list(lake.work.rglob(".*"))
    calls.left[0] = 1 << 30
    load(pipeline)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": ids}


@dataclass(frozen=True)
class NoRoomForMessages(LocalStorage):
    """A disk that is full once the rows are staged; the message may stand all the same."""

    stands: bool = False

    def write_once(self, path: str, *rest: Any) -> bool:
        if "/messages/" not in path:
            return super().write_once(path, *rest)
        if self.stands:
            super().write_once(path, *rest)
        raise StorageFull(path=path, problem="no space left")


@pytest.mark.on_disk
@pytest.mark.follows("StorageFull")
@pytest.mark.parametrize("stands", [False, True])
def test_attempt_whose_message_finds_no_room_keeps_only_what_a_message_names(
    lake: SmallLake, *, stands: bool
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]

    with nothing_moves(lake), pytest.raises(StorageFull, match="Free space"):
        load(lake.pipeline(NoRoomForMessages(stands=stands)))

    staged = {path.parents[2].name for path in lake.work.rglob("staged/*/*/*/*.parquet")}
    messages = {path.stem for path in lake.work.rglob("messages/*.json")}
    assert staged == messages
    assert bool(messages) == stands
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.on_disk
@pytest.mark.follows("StorageFull")
def test_disk_that_fills_while_publishing_leaves_no_marker_and_is_finished_later(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    with small_disk(lake.root / "published", "256k"):
        pipeline = lake.pipeline()
        load(pipeline)
        ballast = lake.root / "published" / "ballast"
        with ballast.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(4096))
                except OSError:
                    break

        failed = next(iter(pipeline.publish_all("cli", NOW)))
        assert "Free space" in (failed.error or "")
        assert lake.ids() == {}
        ballast.unlink()
        publish(pipeline)

        assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.follows("StorageFull")
@pytest.mark.parametrize("left", [0, 20_000])
def test_ledger_on_a_full_disk_works_once_there_is_space(lake: SmallLake, left: int) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    with small_disk(lake.root / "home", "1m"):
        url = f"sqlite:///{lake.root}/home/ledger.db"
        open_pipeline(lake.file(), ledger=url)
        ballast = lake.root / "home" / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(ballast.parent).free - left))

        with (
            nothing_moves(lake),
            pytest.raises(StorageFull, match=r"home/ledger\.db.*Free space"),
        ):
            load(open_pipeline(lake.file(), ledger=url))
        ballast.unlink()
        pipeline = open_pipeline(lake.file(), ledger=url)
        load(pipeline)
        publish(pipeline)

        assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.on_disk
@pytest.mark.follows("WorkElsewhere")
@pytest.mark.skipif(
    not MEMORY.is_dir() or MEMORY.stat().st_dev == Path("/tmp").stat().st_dev,
    reason="needs a second file system",
)
def test_work_directory_on_another_file_system_is_refused(lake: SmallLake) -> None:
    lake.commit({1: 1})
    is_here = lake.root.stat().st_dev == MEMORY.stat().st_dev
    with TemporaryDirectory(dir="/tmp" if is_here else MEMORY) as elsewhere:
        pipeline = lake.pipeline(target={"work": f"{elsewhere}/work"})

        with nothing_moves(lake), pytest.raises(WorkElsewhere, match=elsewhere):
            load(pipeline)

        assert list(Path(elsewhere).iterdir()) == []

    # What the message says to do.
    load(lake.pipeline(target={"work": str(lake.root / "published" / ".work")}))


@pytest.mark.parametrize("ledger", ["ledger.db", "other.db"], ids=["same ledger", "other ledger"])
def test_second_pipeline_on_a_target_is_refused(lake: SmallLake, ledger: str) -> None:
    grown(lake)
    path = lake.file("second", name="second")
    second = open_pipeline(path, ledger=f"sqlite:///{lake.root}/{ledger}")

    with nothing_moves(lake), pytest.raises(TargetOwned, match="'orders', not to 'second'"):
        load(second)


@pytest.mark.parametrize("mode", ["changelog", "snapshot_diff", "lineage_upserts"])
def test_mode_with_row_kinds_on_an_append_target_is_refused(lake: SmallLake, mode: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"source\.read\.mode.*row kinds") as refused:
        lake.pipeline(source={"read": {"mode": mode}})

    assert "append" in str(refused.value)


def test_event_time_in_2099_is_counted_and_does_not_open_the_gate(
    lake: SmallLake, drop: Path
) -> None:
    at = [datetime(2026, 2, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)]
    far = pa.table({"id": [1, 2], "at": pa.array(at, pa.timestamp("us", "UTC"))})
    pq.write_table(far, drop / "a.parquet")
    pipeline = lake.pipeline()

    announced = load(pipeline)
    outcomes = publish(pipeline)

    assert announced.watermark == at[0]
    assert announced.summary.rows_future == 1
    assert {item.state for item in outcomes} == {"pending"}
    assert {item.why.reason for item in outcomes if item.why} == {Reason.WATERMARK_BEHIND}


@pytest.mark.follows("PipelineChanged")
@pytest.mark.parametrize(
    ("key", "change"),
    [
        pytest.param("source", {"source": {"table": "raw.others"}}, id="source"),
        pytest.param(
            "target.path", {"target": {"path": "{root}/published/elsewhere"}}, id="target"
        ),
        pytest.param(
            "target.partition_by", {"target": {"partition_by": {"dt": "month(at)"}}}, id="keys"
        ),
        pytest.param("timezone", {"timezone": "Europe/Berlin"}, id="timezone"),
    ],
)
def test_changed_identity_names_the_key(lake: SmallLake, key: str, change: dict[str, Any]) -> None:
    grown(lake)
    changed = json.loads(json.dumps(change).replace("{root}", str(lake.root)))

    with nothing_moves(lake), pytest.raises(PipelineChanged) as refused:
        load(lake.pipeline(**changed))

    assert refused.value.key == key
    # What the message says to do.
    load(lake.pipeline())
    publish(lake.pipeline())
    assert sum(map(len, lake.ids().values())) == 5
    other = {"name": "anew", "target": {"path": str(lake.root / "published" / "anew")}}
    changed.setdefault("target", {}).pop("path", None)
    if key != "source":
        load(lake.pipeline(**{**changed, **other, "target": changed["target"] | other["target"]}))


@pytest.mark.follows("SuiteInvalid")
def test_broken_suite_ends_the_check_and_publishes_nothing(lake: SmallLake) -> None:
    (lake.root / "suite.json").write_text('{"name": "orders", "expectations": [{"type": 1}]}')
    lake.keys = {"gate": {"suite": "suite.json"}}
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)

    with pytest.raises(SuiteInvalid, match=r"suite\.json"):
        pipeline.publish(day(1), "cli", NOW)

    assert lake.ids() == {}
    # What the message says to do.
    check = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}
    suite = {"name": "orders", "expectations": [check]}
    (lake.root / "suite.json").write_text(json.dumps(suite))
    publish(lake.pipeline())
    assert list(lake.ids()) == ["dt=2026-02-01"]


def changed_since(pipeline: Pipeline) -> list[str]:
    status = pipeline.status(NOW)
    assert status is not None
    return [note for note in status.notes if "the pipeline file changed" in note]


def test_run_that_takes_a_planned_window_over_takes_the_changed_pipeline_file(
    lake: SmallLake,
) -> None:
    lake.commit({1: 5, 2: 1})
    lake.pipeline().plan(Run("run-0", "worker-0"), NOW)
    told = []
    for number in range(1, 4):
        heir = later(lake.pipeline(source={"read": {"filter": f"id > {number}"}}), number * HOUR)
        told.append(len(changed_since(heir)))
        heir.plan(Run(f"run-{number}", f"worker-{number}"), NOW + number * HOUR)
        told.append(len(changed_since(heir)))

    load(later(heir, 4 * HOUR), owner="heir")
    publish(heir)

    assert told == [1, 0, 1, 0, 1, 0]
    assert lake.ids() == {"dt=2026-02-01": [4, 5]}


def test_pipeline_file_changed_between_plan_and_read_has_no_effect(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})
    before = lake.pipeline()
    planned = before.plan(Run("a", "scheduled__a"), NOW)
    changes = {"source": {"read": {"filter": "id > 2"}}, "event_time": {"column": "at"}}
    changes["event_time"]["lateness"] = "30d"  # type: ignore[index]
    after = lake.pipeline(**changes)

    noted = changed_since(after)
    announced = after.finish_load(planned, NOW, local)
    publish(after)

    assert len(noted) == 1
    assert changed_since(after) == []
    assert announced.watermark == datetime(2026, 2, 2, 0, 1, tzinfo=UTC)
    assert lake.ids() == {"dt=2026-02-01": ids[:3]}


@pytest.mark.on_disk
@pytest.mark.parametrize(("further", "notes"), [({"path": None}, 0), ({"of_tomorrow": 1}, 1)])
def test_plan_of_another_version_says_that_the_file_changed_only_where_it_may_have(
    lake: SmallLake, further: dict[str, Any], notes: int
) -> None:
    """An earlier version wrote the options of every kind of source, a later one may know more."""
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    (planned,) = pipeline.plan(Run("a", "scheduled__a"), NOW)
    path = Path(planned.uri) / "plan.json"
    written = json.loads(path.read_text())
    written["config"]["source"] |= further
    path.write_text(json.dumps(written))

    assert len(changed_since(lake.pipeline())) == notes
