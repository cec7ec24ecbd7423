from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tidegate.demo.airflow_environment import Ports
from tidegate.demo.occupying import occupy
from tidegate.errors import AirflowRunning, StorageDenied

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys, pathlib
from tidegate.demo.airflow_environment import Ports
from tidegate.demo.occupying import occupy
occupation = occupy(pathlib.Path(sys.argv[1]))
occupation.note(1, Ports(1001, 1002, 1003))
print("up", flush=True)
sys.stdin.readline()
"""
# A session with a member that ignores polite requests.
REMAINS = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("up", flush=True)
time.sleep(60)
"""


def _start(script: str, home: Path, **options: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(home)],
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.follows("AirflowRunning")
def test_second_one_is_refused_until_the_first_is_ended_as_told(tmp_path: Path) -> None:
    first = _start(HOLDER, tmp_path)

    with pytest.raises(AirflowRunning) as refused:
        occupy(tmp_path)

    told = f"`kill {first.pid}`"
    assert told in str(refused.value)
    assert "http://127.0.0.1:1001" in str(refused.value)
    psutil.Process(refused.value.process).terminate()
    first.communicate(timeout=30)
    occupy(tmp_path).give_up()


def test_second_one_is_refused_before_the_first_has_noted_anything(tmp_path: Path) -> None:
    first = occupy(tmp_path)

    with pytest.raises(AirflowRunning, match="not known yet"):
        occupy(tmp_path)

    first.give_up()


def test_home_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "running.json").mkdir()

    with pytest.raises(StorageDenied, match="running"):
        occupy(tmp_path)


def test_ports_stay_the_same_as_long_as_they_are_free(tmp_path: Path) -> None:
    first = occupy(tmp_path)
    before = first.ports()
    first.note(os.getpid(), before)
    first.give_up()

    second = occupy(tmp_path)
    with socket.socket() as taken:
        taken.bind(("", before.worker_logs))
        taken.listen()
        beside = second.ports()

    assert second.ports() == before
    assert (beside.api, beside.trigger_logs) == (before.api, before.trigger_logs)
    assert beside.worker_logs != before.worker_logs
    second.give_up()


def test_remains_of_a_killed_predecessor_are_ended_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home = tmp_path / "home"
    home.mkdir()
    remains = _start(REMAINS, home, start_new_session=True)
    stranger = _start(REMAINS, tmp_path / "elsewhere", start_new_session=True)
    for session in (remains, stranger):
        (home / "running.json").write_text(json.dumps({"session": session.pid}))

        occupation = occupy(home)
        occupation.end_remains(0.3)
        occupation.give_up()

    assert remains.wait(10) != 0
    assert stranger.poll() is None
    for child in psutil.Process(stranger.pid).children():
        child.kill()
    stranger.kill()
    for process in (remains, stranger):
        process.communicate()


def test_file_that_was_cut_is_read_as_no_note(tmp_path: Path) -> None:
    (tmp_path / "running.json").write_text('{"session": 1')

    occupation = occupy(tmp_path)

    occupation.end_remains(0.1)
    assert isinstance(occupation.ports(), Ports)
    occupation.give_up()
