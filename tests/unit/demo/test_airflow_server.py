from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tidegate.demo import airflow_server
from tidegate.demo.airflow_server import (
    AirflowServer,
    Ports,
    airflow_environment,
    ended_like_interrupted,
    interrupts_deferred,
    session_members,
)
from tidegate.errors import AirflowNotStarted

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_environment_of_the_user_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = {
        "AIRFLOW__API__PORT": "1",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW_CONN_OTHER": "{}",
        "TIDEGATE_LEDGER": "postgresql://nowhere",
        "SPARK_CONF_DIR": "/nowhere",
        "PYTHONHOME": "/nowhere",
        "http_proxy": "http://nowhere.invalid",
    }
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)

    found = airflow_environment(tmp_path, Ports(1001, 1002, 1003), {"TIDEGATE_HOME": "/here"})

    assert found["AIRFLOW__API__PORT"] == "1001"
    assert found["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:1001"  # AF-2.3
    assert found["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert found["AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT"] == "1002"
    assert found["AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT"] == "1003"
    assert found["TIDEGATE_HOME"] == "/here"
    assert found["PATH"].startswith(str(Path(sys.executable).parent))
    assert len(found["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64
    kept_out = ("AIRFLOW_CONN_OTHER", "TIDEGATE_LEDGER", "SPARK_CONF_DIR", "PYTHONHOME")
    assert not {*kept_out, "http_proxy"} & set(found)


def test_ports_are_free_and_differ() -> None:
    ports = Ports.free()

    numbers = {ports.api, ports.worker_logs, ports.trigger_logs}
    assert len(numbers) == 3
    for number in numbers:
        with socket.socket() as listener:
            listener.bind(("", number))


def test_interrupt_in_a_deferred_block_comes_after_it() -> None:
    done = []

    def work() -> None:
        with interrupts_deferred():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            done.append("block")

    with pytest.raises(KeyboardInterrupt):
        work()

    assert done == ["block"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_cleans_up_like_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def work() -> None:
        with ended_like_interrupted():
            os.kill(os.getpid(), number)
            time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        work()

    assert signal.getsignal(number) == before
