"""Driver lost, worker lost, two attempts at once: one message per sub-split, and the same end."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crash.faults import Stopper, stopping_storage
from crash.scenario import Life, ending, make_source
from golden_iceberg import golden
from tidegate.execute.spark import SparkExecutor
from tidegate.model.message import CommitMessage
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.load.staging import stage_split
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout
from tidegate.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline

# Shares of a whole life at which the driver dies.
SAMPLE = (0.5,)
MORE = (0.02, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.98)


def live(folder: Path, at: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crash.spark_life", str(folder)]
    return subprocess.run(
        command if at is None else [*command, "--at", str(at)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object], int]:
    folder = tmp_path_factory.mktemp("spark-life")
    (folder / "source.pickle").write_bytes(pickle.dumps(make_source(folder / "source")))
    fresh(folder)
    lived = live(folder)
    assert lived.returncode == 0, lived.stderr
    return folder, ending(folder / "root"), int(lived.stdout)


def fresh(folder: Path) -> None:
    shutil.rmtree(folder / "root", ignore_errors=True)
    metadata, times = pickle.loads((folder / "source.pickle").read_bytes())
    Life(folder / "root", metadata, times).prepare()


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "share", [*SAMPLE, *(pytest.param(share, marks=pytest.mark.slow) for share in MORE)]
)
def test_driver_lost_at_a_change_ends_as_an_undisturbed_life(
    undisturbed: tuple[Path, dict[str, object], int], share: float
) -> None:
    folder, expected, changes = undisturbed
    fresh(folder)

    died = live(folder, at=max(1, int(changes * share)))
    lived = live(folder)

    assert died.returncode == -signal.SIGKILL, died.stderr
    assert lived.returncode == 0, lived.stderr
    assert ending(folder / "root") == expected


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Pipeline, PlannedWindow]:
    life = Life(tmp_path / "root", *make_source(tmp_path / "source"))
    life.prepare()
    pipeline = life.pipeline(None, "hold", None)
    (window,) = pipeline.plan(Run("run", "run"), life.times[-1])
    return pipeline, window


def messages(planned: PlannedWindow) -> list[str]:
    return LocalStorage().list_files(layout.messages_root(planned.uri))


def sub_splits(planned: PlannedWindow) -> set[str]:
    splits = read_splits(LocalStorage(), planned.uri)
    return {f"{part.id}.json" for split in splits for part in split.sub_splits}


def dies_once(
    flag: str, storage: Storage, plan_uri: str, index: int, attempt: str
) -> tuple[CommitMessage, ...]:
    """Stage a split, and on the first call of all take the process down just afterwards."""
    staged = stage_split(storage, plan_uri, index, attempt)
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return staged
    os.kill(os.getpid(), signal.SIGKILL)
    return staged


@pytest.mark.spark
@pytest.mark.timeout(120)
def test_worker_lost_after_its_messages_leaves_one_per_sub_split(
    spark: SparkSession, planned: tuple[Pipeline, PlannedWindow], tmp_path: Path
) -> None:
    _, window = planned
    task = functools.partial(dies_once, str(tmp_path / "died"), LocalStorage())

    with SparkExecutor(spark.sparkContext) as executor:
        list(executor.run(task, window.uri, range(window.splits), "w1"))

    assert (tmp_path / "died").exists()
    assert set(messages(window)) == sub_splits(window)


def test_two_attempts_at_once_leave_one_message_and_one_set_of_files(
    planned: tuple[Pipeline, PlannedWindow],
) -> None:
    _, window = planned
    together = threading.Barrier(4)

    def attempt(name: str) -> None:
        together.wait()
        for index in range(window.splits):
            stage_split(LocalStorage(), window.uri, index, name)

    threads = [threading.Thread(target=attempt, args=(f"w1.t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(messages(window)) == sub_splits(window)
    staged = LocalStorage().list_files(f"{window.uri}/{layout.STAGED}")
    assert len({path.split("/")[1] for path in staged}) <= len(sub_splits(window))
    assert len(staged) == len({path.rpartition("/")[2] + path.split("/")[2] for path in staged})


@pytest.fixture
def planned_dense(tmp_path: Path) -> PlannedWindow:
    """Plan one dense file of two million rows, as a few splits of several sub-splits."""
    table = golden("dense_file_v2")
    rewrites = table.answers["location_rewrite"].items()
    keys = {
        "name": "dense",
        "source": {
            "kind": "iceberg",
            "metadata": str(table.metadata),
            "location_rewrite": {old: str(table.folder / new) for old, new in rewrites},
            "split": {"max_rows": 100_000},
        },
        "commit": {"trigger": "process-time"},
        "target": {"path": str(tmp_path / "published" / "dense")},
    }
    (tmp_path / "published").mkdir()
    file = tmp_path / "dense.yaml"
    file.write_text(json.dumps(keys))
    pipeline = open_pipeline(file, ledger=f"sqlite:///{tmp_path}/ledger.db")
    (window,) = pipeline.plan(Run("run", "run"), datetime(2027, 1, 1, tzinfo=UTC))
    return window


def dies_inside(
    flag: str, storage: Storage, plan_uri: str, index: int, attempt: str
) -> tuple[CommitMessage, ...]:
    """Stage a split, and once of all take the process down before its second part is made."""

    def die_once() -> None:
        made = stopper.made
        if made[-1].startswith("create part-") and sum("create part-" in it for it in made) > 1:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)

    stopper = Stopper(between=die_once)
    return stage_split(stopping_storage(stopper), plan_uri, index, attempt)


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_worker_lost_inside_a_dense_file_reads_no_finished_sub_split_again(
    spark: SparkSession, planned_dense: PlannedWindow, tmp_path: Path
) -> None:
    task = functools.partial(dies_inside, str(tmp_path / "died"), LocalStorage())

    with SparkExecutor(spark.sparkContext) as executor:
        list(executor.run(task, planned_dense.uri, range(planned_dense.splits), "w1"))

    root = f"{planned_dense.uri}/{layout.MESSAGES}"
    found = [
        CommitMessage.from_text((Path(root) / name).read_bytes())
        for name in messages(planned_dense)
    ]
    attempts = {message.attempt for message in found}
    assert (tmp_path / "died").exists()
    assert set(messages(planned_dense)) == sub_splits(planned_dense)
    assert sum(message.staged.rows_kept for message in found) == 1_997_000
    # What the lost attempt had finished stands; the rest of its split is another attempt's.
    assert len(attempts) == planned_dense.splits + 1
