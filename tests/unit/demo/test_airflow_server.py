from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tidegate.demo import airflow_server
from tidegate.demo.airflow_server import AirflowServer
from tidegate.demo.occupying import session_members
from tidegate.errors import AirflowNotStarted, StorageDenied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Ignores every polite request, and so do the children, one of which left the process group.
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
subprocess.Popen(sleeper)
subprocess.Popen(sleeper, process_group=0)
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> Iterator[AirflowServer]:
    monkeypatch.setattr(airflow_server, "_POLITE_SECONDS", 0.3)
    server = AirflowServer(tmp_path / "airflow", {}, tell=told.append)
    yield server
    server.stop()


def _start(server: AirflowServer, script: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout as said:
        said.readline()
    server._process = process
    return process.pid


def _part(session: int, name: str) -> psutil.Process:
    (part,) = (
        child
        for child in psutil.Process(session).children()
        if {name, name.replace("-", "_")} & set(child.cmdline())
    )
    return part


def _kill(part: psutil.Process) -> None:
    part.kill()
    while part.is_running() and part.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


def test_stop_ends_every_process_of_the_session(server: AirflowServer) -> None:
    session = _start(server, STUBBORN)
    assert len(session_members(session)) == 3

    server.stop()

    assert session_members(session) == []
    assert not psutil.pid_exists(session)


def test_stop_of_a_server_that_never_started_does_nothing(server: AirflowServer) -> None:
    server.stop()


def test_server_that_ended_by_itself_is_reported_with_its_log(server: AirflowServer) -> None:
    _start(server, "print('up')")
    assert server._process is not None
    server._process.wait()

    with pytest.raises(AirflowNotStarted, match=r"it ended with code 0.*standalone\.log"):
        server.check_running()


PARTS = """
import subprocess, sys, time
sleep = "import time; time.sleep(60)"
for name in ("scheduler", "dag-processor", "api_server", "triggerer"):
    subprocess.Popen([sys.executable, "-c", sleep, name])
time.sleep(0.3)
print("up", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("name", ["scheduler", "dag-processor", "api-server", "triggerer"])
def test_part_that_ended_is_told_once_and_ends_nothing_else(
    server: AirflowServer, told: list[str], name: str
) -> None:
    session = _start(server, PARTS)
    server.check_running()
    _kill(_part(session, name))

    server.check_running()
    server.check_running()

    assert len(told) == 1
    assert re.search(rf"its {name} ended.*standalone\.log.*Starting it again", told[0])


def test_part_that_ends_again_and_again_is_given_up(
    server: AirflowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _start(server, PARTS)
    numbers = itertools.count()
    monkeypatch.setattr(airflow_server, "_running_parts", lambda _: {"triggerer": next(numbers)})
    for _ in range(6):
        server.check_running()

    with pytest.raises(AirflowNotStarted, match=r"its triggerer ended again and again"):
        server.check_running()


def test_parts_that_end_because_their_database_did_are_not_given_up(
    server: AirflowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _start(server, PARTS)
    numbers = itertools.count()
    monkeypatch.setattr(airflow_server, "_running_parts", lambda _: {"triggerer": next(numbers)})
    monkeypatch.setattr(server, "_revive", lambda: True)

    for _ in range(20):
        server.check_running()


@dataclass
class Coming:
    """A client of an Airflow of which one thing more comes up with each look, up to some number."""

    looks_until_ready: int
    most: int
    looks: int = 0

    def is_ready(self, _dag_ids: tuple[str, ...]) -> bool:
        return self.looks >= self.looks_until_ready

    def reached(self, _dag_ids: tuple[str, ...]) -> frozenset[str]:
        self.looks += 1
        return frozenset({f"part-{min(self.looks, self.most)}"})

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock of this module that only sleeping moves."""
    now = [0.0]
    fake = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    monkeypatch.setattr(airflow_server, "time", fake)
    return now


def test_start_has_time_as_long_as_something_more_comes_up(
    server: AirflowServer, clock: list[float]
) -> None:
    _start(server, PARTS)
    coming: Any = Coming(looks_until_ready=20, most=20)
    server._client = coming

    server.wait_until_ready((), seconds=2)

    assert clock[0] == 10


def test_start_is_given_up_once_nothing_more_comes_up(
    server: AirflowServer, clock: list[float]
) -> None:
    _start(server, PARTS)
    coming: Any = Coming(looks_until_ready=99, most=4)
    server._client = coming

    with pytest.raises(AirflowNotStarted, match=r"found .*part-4.*, and nothing more for 2 s"):
        server.wait_until_ready((), seconds=2)


def test_home_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(StorageDenied, match="file/airflow"),
        AirflowServer(tmp_path / "file" / "airflow", {}),
    ):
        pytest.fail("the block must not begin")


def test_client_of_a_server_that_is_not_running_is_refused(server: AirflowServer) -> None:
    with pytest.raises(AirflowNotStarted, match="it is not running"):
        _ = server.client


def test_interrupt_while_starting_leaves_no_process(
    server: AirflowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[int] = []

    def start_and_interrupt() -> None:
        sessions.append(_start(server, STUBBORN))
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "start", start_and_interrupt)

    with pytest.raises(KeyboardInterrupt), server:
        pytest.fail("the block must not begin")

    assert session_members(sessions[0]) == []
