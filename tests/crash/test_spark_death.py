"""Driver lost, worker lost, two attempts at once: one message per sub-split, and the same end."""

from __future__ import annotations

import functools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from crash.scenario import Life, ending, make_source
from tidegate.execute.spark import SparkExecutor
from tidegate.model.run import Run
from tidegate.pipeline.plan_files import read_splits
from tidegate.pipeline.staging import stage_split
from tidegate.stage import layout
from tidegate.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tidegate.model.message import CommitMessage
    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline

# Shares of a whole life at which the driver dies.
SAMPLE = (0.1, 0.5)
MORE = (0.02, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.98)


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

    with SparkExecutor(spark) as executor:
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
