"""A load on a standalone cluster whose workers know nothing of the driver but its Python.

Their environment and working directory are empty, as those of another host are.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from small_lake import SmallLake, publish

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SPARK = Path(pyspark.__file__).parent
JAVA_OPTIONS = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("sun.nio.ch", "java.nio")),
)
SECRET = "aWordThatNoLogMayHave"

DRIVER = """
import sys
from small_lake import NOW
from tidegate.execute.spark import SparkExecutor
from tidegate.errors import TidegateError
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
pipeline = open_pipeline(sys.argv[1], ledger=sys.argv[2])
try:
    pipeline.load(Run("run", "cli", None, None), NOW, lambda _: SparkExecutor(master=sys.argv[3]))
except TidegateError as error:
    print(error.code, error)
else:
    print("loaded")
"""


def _start(log: Path, *command: str) -> subprocess.Popen[bytes]:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    assert java is not None
    nowhere = log.parent / "nowhere"
    nowhere.mkdir(exist_ok=True)
    with log.open("wb") as said:
        return subprocess.Popen(
            [java, *JAVA_OPTIONS, "-cp", f"{SPARK}/jars/*", *command],
            # What Spark's own scripts set, and nothing else.
            env={"SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13"},
            cwd=nowhere,
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def _wait_for(pattern: str, log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 120
    while not (found := re.search(pattern, log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return found[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A master and a worker: its address, and the folder of all that it writes."""
    folder = tmp_path_factory.mktemp("cluster")
    deploy, here = "org.apache.spark.deploy", ("--host", "127.0.0.1", "--webui-port", "0")
    logs = folder / "master.log", folder / "worker.log"
    running = [_start(logs[0], f"{deploy}.master.Master", *here, "--port", "0")]
    try:
        address = _wait_for(r"spark://127\.0\.0\.1:[1-9]\d*", logs[0], running[0])
        options = *here, "-c", "2", "-m", "1g", "-d", str(folder / "work"), address
        running.append(_start(logs[1], f"{deploy}.worker.Worker", *options))
        _wait_for("Successfully registered with master", logs[1], running[1])
        yield address, folder
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def _load(lake: SmallLake, master: str, **environment: str) -> subprocess.CompletedProcess[str]:
    arguments = str(lake.file()), f"sqlite:///{lake.root}/ledger.db", master
    kept = {name: value for name, value in os.environ.items() if name != "LAKE_SECRET"}
    return subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    secret = {"s3.secret-access-key": "${env:LAKE_SECRET}"}
    lake.keys = {"source": {"catalog": secret}, "execute": {"engine": "spark"}}
    return lake


def test_load_needs_neither_package_nor_environment_of_the_workers(
    cluster: tuple[str, Path], lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, folder = cluster
    ids = lake.commit({1: 3, 2: 1})[:3]

    events = lake.root / "events"
    events.mkdir()
    options = f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={events.as_uri()}"

    done = _load(lake, master, LAKE_SECRET=SECRET, PYSPARK_SUBMIT_ARGS=f"{options} pyspark-shell")

    assert done.stdout.splitlines() == ["loaded"], done.stderr
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {"dt=2026-02-01": ids}
    assert SECRET not in done.stderr
    written = [path for root in (folder, lake.root) for path in root.rglob("*") if path.is_file()]
    assert any(path.name == "stderr" for path in written)
    assert list(events.iterdir())
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("python", "lacking"),
    [
        pytest.param(
            sys._base_executable,  # type: ignore[attr-defined]
            "the Python package 'pyarrow'",
            marks=pytest.mark.slow,
            id="no-packages",
        ),
        pytest.param("/nowhere/python", "the Python /nowhere/python", id="no-python"),
    ],
)
def test_python_that_a_worker_lacks_is_named(
    cluster: tuple[str, Path], lake: SmallLake, python: str, lacking: str
) -> None:
    lake.commit({1: 3, 2: 1})

    done = _load(lake, cluster[0], LAKE_SECRET=SECRET, PYSPARK_PYTHON=python)

    told, _, remedy = done.stdout.partition(" is missing. ")
    assert told == f"EnvironmentIncomplete on a Spark worker, {lacking}", done.stderr
    assert "PYSPARK_PYTHON" in remedy


def test_variable_that_nobody_has_is_named_with_its_place(
    cluster: tuple[str, Path], lake: SmallLake
) -> None:
    lake.commit({1: 3, 2: 1})

    done = _load(lake, cluster[0])

    assert re.match(
        r"SecretMissing `source.catalog.s3.secret-access-key`: the environment variable "
        rf"LAKE_SECRET is not set on host {re.escape(socket.gethostname())}, in process \d+\.",
        done.stdout,
    )
