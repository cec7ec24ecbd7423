from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

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
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AirflowServer]:
    monkeypatch.setattr(airflow_server, "_POLITE_SECONDS", 0.3)
    server = AirflowServer(tmp_path / "airflow", {})
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
def test_part_that_ended_is_named_although_the_rest_goes_on(
    server: AirflowServer, name: str
) -> None:
    session = _start(server, PARTS)
    server.check_running()
    (part,) = (
        child
        for child in psutil.Process(session).children()
        if {name, name.replace("-", "_")} & set(child.cmdline())
    )
    part.kill()
    while part.is_running() and part.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)

    with pytest.raises(AirflowNotStarted, match=rf"its {name} ended.*standalone\.log"):
        server.check_running()


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
