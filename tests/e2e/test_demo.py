"""`tidegate demo` as a user runs it: a process of its own, with nothing prepared."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tidegate.demo.airflow_client import AirflowClient
from tidegate.demo.databases import databases
from tidegate.demo.driver import airflow_of
from tidegate.demo.flights import FIRST_DAY, LAST_DAY
from tidegate.demo.places import PIPELINE, DagIds, DemoPlaces
from tidegate.demo.plot import midnight
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.timeout(1800),
]

ROOT = Path(__file__).resolve().parents[2]
DAGS = DagIds.of(PIPELINE)

# What a user's shell may hold; none of it may reach the demo.
FOREIGN = {
    "AIRFLOW_HOME": "/nowhere/airflow",
    "AIRFLOW__API__PORT": "1",
    "AIRFLOW__API__BASE_URL": "http://nowhere.invalid:1",
    "AIRFLOW__CORE__DAGS_FOLDER": "/nowhere/dags",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg2://nobody@nowhere.invalid/none",
    "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "yarn"}',
    "TIDEGATE_LEDGER": "postgresql+psycopg://nobody@nowhere.invalid/none",
    "TIDEGATE_PIPELINES": "/nowhere/pipelines",
    "SPARK_CONF_DIR": "/nowhere/spark",
    "http_proxy": "http://nowhere.invalid:3128",
    "https_proxy": "http://nowhere.invalid:3128",
}


@dataclass
class Demo:
    """A running `tidegate demo` and what it has said so far."""

    process: subprocess.Popen[bytes]
    output: Path

    def said(self) -> str:
        return self.output.read_text()

    def wait_for(self, text: str, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.said():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.2)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(90)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[DemoPlaces]:
    places = DemoPlaces(tmp_path / "home")
    with places.set_here():
        yield places
    for left in _processes_of(places):
        psutil.Process(left).kill()


DEMO, UI = (("-m", "tidegate.cli", command) for command in ("demo", "ui"))
# The user has moved the demo's pipeline away.
UI_WITHOUT_PIPELINES = """
from pathlib import Path
from tidegate.cli.app import app
from tidegate.demo.places import DemoPlaces
DemoPlaces.file = Path.cwd() / "no-pipelines" / "flights.yaml"
DemoPlaces.file.parent.mkdir()
app(["ui"])
"""


def _start(places: DemoPlaces, name: str, *arguments: str) -> Demo:
    output = places.home.parent / f"{name}.txt"
    environment = {**os.environ, **FOREIGN, "TIDEGATE_HOME": str(places.home), "COLUMNS": "200"}
    with output.open("wb") as file:
        process = subprocess.Popen(
            [ROOT / "tools" / "run", sys.executable, *arguments],
            env=environment,
            cwd=places.home.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return Demo(process, output)


def _processes_of(places: DemoPlaces) -> list[int]:
    """Find every process that was told of this home or works in it, however it was started.

    Those of Airflow that give themselves a title write it over what they were told.
    """
    found = []
    for process in psutil.process_iter():
        try:
            told, folder = process.environ().get("TIDEGATE_HOME"), Path(process.cwd())
        except psutil.Error:
            continue
        is_ours = told == str(places.home) or folder.is_relative_to(places.home)
        if is_ours and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def _published_rows(places: DemoPlaces) -> Counter[str]:
    """Count the rows of every published day with DuckDB, which knows nothing of Tidegate."""
    import duckdb

    files = f"{places.lake}/published/flights/*/*.parquet"
    query = f"SELECT dt, count(*), count(DISTINCT hash(*COLUMNS(*))) FROM '{files}' GROUP BY dt"
    rows = duckdb.sql(query).fetchall()
    assert all(every == distinct for _, every, distinct in rows), rows
    return Counter({str(day): every for day, every, _ in rows})


def _planned_flights() -> Counter[str]:
    """Count the flights per planned day in the package itself, with DuckDB."""
    import zipfile

    import duckdb
    import pyarrow.csv

    from tidegate.demo.flights import package_file

    with zipfile.ZipFile(package_file("flights.csv.zip")) as archive:
        flights = pyarrow.csv.read_csv(archive.open("flights.csv"))
    query = """
        SELECT make_date(year, month, day) AS dt, count(*) FROM flights
        WHERE dt BETWEEN DATE '2013-02-05' AND DATE '2013-02-12' GROUP BY dt
    """
    counted = duckdb.from_arrow(flights).query("flights", query).fetchall()
    return Counter({str(day): rows for day, rows in counted})


def _fingerprints(places: DemoPlaces) -> dict[str, tuple[int, int]]:
    root = places.lake / "published" / "flights"
    return {
        str(file.relative_to(root)): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def _check_end_state(places: DemoPlaces) -> None:
    with databases(places), places.set_here():
        report = open_pipeline(places.file).status(datetime.now(UTC))
    assert report is not None
    days = {str(item.state.partition): item for item in report.partitions}
    state = {path[-2:]: (item.name, item.state.revision) for path, item in days.items()}
    assert state == {
        "05": ("committed", 1),
        "06": ("committed", 2),
        "07": ("committed", 1),
        "08": ("committed", 1),
        "09": ("held", 0),
        "10": ("committed", 1),
        "11": ("committed", 1),
        "12": ("pending", 0),
    }
    held, waiting = days["dt=2013-02-09"].why, days["dt=2013-02-12"].why
    assert held is not None
    assert "42.5 %" in held.detail
    assert waiting is not None
    assert waiting.reason is not None
    assert waiting.reason.value == "WATERMARK_BEHIND"
    assert "13 h missing" in waiting.detail

    planned = _planned_flights()
    del planned["2013-02-09"], planned["2013-02-12"]
    assert _published_rows(places) == planned
    for marker in (places.lake / "published" / "flights").glob("*/_SUCCESS"):
        content = json.loads(marker.read_text())
        files = {item["name"] for item in content["files"]}
        assert files == {file.name for file in marker.parent.glob("*.parquet")}
        assert content["rows"] == planned[content["partition"]["dt"]]


def _check_airflow(client: AirflowClient) -> None:
    """Ask Airflow itself what it knows of the runs."""
    loads, publishes = client.runs(DAGS.load), client.runs(DAGS.publish)
    questions = client.questions(DAGS.publish)

    assert [run.state for run in loads] == ["success"] * 8
    by_key: dict[str | None, set[str]] = {}
    for run in publishes:
        by_key.setdefault(run.partition_key, set()).add(run.state)
    days = [date(2013, 2, number).isoformat() for number in range(5, 13)]
    assert sorted(map(str, by_key)) == days
    assert {key for key, states in by_key.items() if states == {"success"}} == {
        day for day in days if day not in ("2013-02-09", "2013-02-12")
    }
    open_runs = {run.run_id for run in publishes if run.partition_key == "2013-02-09"}
    assert {question.run_id for question in questions} <= open_runs
    assert len(questions) == 1


def _reprocess(places: DemoPlaces, *, backwards: bool = False) -> None:
    """Do every day again as the UI's dialog does with "All Runs", four at a time.

    One Airflow does it, and every run stands in its history afterwards as before.
    """
    first, last = midnight(FIRST_DAY), midnight(LAST_DAY)
    with databases(places) as notes, airflow_of(places) as server:
        server.wait_until_ready(DAGS.all)
        before = server.client.runs(DAGS.load)
        server.client.backfill(
            DAGS.load, first, last, reprocess="completed", max_active_runs=4, backwards=backwards
        )
        deadline = time.monotonic() + 600
        while server.client.is_backfilling(DAGS.load):
            server.check_running()
            assert time.monotonic() < deadline, "the backfill did not end"
            time.sleep(1)
        assert server.client.runs(DAGS.load) == before
    assert notes == ()


def test_demo_run_ends_as_told_and_a_second_run_does_nothing(places: DemoPlaces) -> None:
    demo = _start(places, "first", *DEMO)

    assert demo.process.wait(900) == 0, demo.said()
    assert _processes_of(places) == []
    _check_end_state(places)
    before = _fingerprints(places)
    started = time.monotonic()
    again = _start(places, "second", *DEMO)
    assert again.process.wait(60) == 0, again.said()
    assert time.monotonic() - started < 60
    assert "Already published" in again.said()
    assert _fingerprints(places) == before
    with databases(places), airflow_of(places) as server:
        server.wait_until_ready(DAGS.all)
        _check_airflow(server.client)
    _reprocess(places)
    _reprocess(places, backwards=True)
    assert _fingerprints(places) == before
    _check_end_state(places)
    assert _processes_of(places) == []


def test_two_demos_side_by_side_share_nothing(tmp_path: Path) -> None:
    both = [DemoPlaces(tmp_path / name) for name in ("one", "other")]

    with (
        databases(both[0]),
        databases(both[1]),
        airflow_of(both[0]) as one,
        airflow_of(both[1]) as other,
    ):
        one.wait_until_ready(DAGS.all)
        other.wait_until_ready(DAGS.all)
        one.client.unpause(DAGS.load)
        one.client.trigger(DAGS.reconcile)
        runs = [server.client.runs(DAGS.reconcile) for server in (one, other)]

    assert [len(found) for found in runs] == [1, 0]
    assert [_processes_of(places) for places in both] == [[], []]


def test_ui_names_what_ended_and_is_back_at_its_address(places: DemoPlaces) -> None:
    ui = _start(places, "ui", *UI)
    ui.wait_for("Airflow is at")
    address = re.findall(r"http://\S+", ui.said())

    second = _start(places, "second", *UI)
    assert second.process.wait(60) == 1
    assert "AirflowRunning" in second.said()
    assert address[0] in second.said()
    _kill(places, "airflow", "scheduler")
    ui.wait_for("its scheduler ended")
    client = AirflowClient(address[0])
    _wait_until(lambda: bool(_running(places, "airflow", "scheduler")), "the next scheduler")
    _wait_until(lambda: client.is_ready(DAGS.all), "Airflow")
    client.close()
    assert ui.said().count("Airflow is at") == 1
    _kill(places, "postgres", "-D")
    ui.wait_for("PostgreSQL ended")
    ui.process.kill()
    ui.process.wait()
    third = _start(places, "third", "-c", UI_WITHOUT_PIPELINES)
    third.wait_for("Airflow is at")

    assert third.interrupt() not in (0, 1)
    said = ui.said() + third.said()
    assert set(re.findall(r"http://\S+", said)) == set(address)
    assert "Traceback" not in said
    _wait_until(lambda: _processes_of(places) == [], "the end of all processes")


def _running(places: DemoPlaces, program: str, argument: str) -> list[int]:
    """Find the processes of a home that run a program with this first argument."""
    found = []
    for pid in _processes_of(places):
        with contextlib.suppress(psutil.Error):
            names = [Path(part).name for part in psutil.Process(pid).cmdline()]
            if (program, argument) in itertools.pairwise(names):
                found.append(pid)
    return found


def _kill(places: DemoPlaces, program: str, argument: str) -> None:
    psutil.Process(min(_running(places, program, argument))).kill()


def test_demo_interrupted_in_each_phase_leaves_no_process_and_ends_the_same(
    places: DemoPlaces,
) -> None:
    phases = {
        "starting": lambda _: _wait_until(lambda: len(_processes_of(places)) > 1, "Airflow"),
        "waiting": lambda demo: demo.wait_for("The lake"),
        "loading": lambda demo: (demo.wait_for("Backfill of"), _wait_for_driver(places)),
        "publishing": lambda demo: demo.wait_for("dt=2013-02-05  committed"),
    }
    later = {"starting": "Airflow is up", "waiting": "Airflow is up"}
    for name, begins in phases.items():
        demo = _start(places, name, *DEMO)
        begins(demo)
        assert later.get(name, "Done in") not in demo.said(), (name, demo.said())

        code = demo.interrupt()

        assert code not in (0, 1), (name, demo.said())
        assert "Traceback" not in demo.said(), (name, demo.said())
        assert _processes_of(places) == [], name

    last = _start(places, "last", *DEMO)

    assert last.process.wait(900) == 0, last.said()
    assert _processes_of(places) == []
    _check_end_state(places)


def test_demo_killed_with_scheduler_and_driver_in_a_load_ends_the_same(
    places: DemoPlaces,
) -> None:
    demo = _start(places, "killed", *DEMO)
    demo.wait_for("dt=2013-02-05  committed")
    _wait_for_driver(places)

    for pid in _processes_of(places):
        psutil.Process(pid).kill()
    demo.process.wait(30)

    again = _start(places, "again", *DEMO)
    assert again.process.wait(900) == 0, again.said()
    assert _processes_of(places) == []
    _check_end_state(places)


def _wait_for_driver(places: DemoPlaces) -> None:
    """Wait until a Spark driver is at work."""
    _wait_until(lambda: _has_driver(places), "a Spark driver")


def _has_driver(places: DemoPlaces) -> bool:
    for pid in _processes_of(places):
        with contextlib.suppress(psutil.Error):
            if "merge_read.py" in " ".join(psutil.Process(pid).cmdline()):
                return True
    return False


def _wait_until(has_begun: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 300
    while not has_begun():
        assert time.monotonic() < deadline, f"{what} was not started"
        time.sleep(0.2)
