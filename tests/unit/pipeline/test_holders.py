"""Whether a holder is a process that is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tidegate.pipeline.holders import is_gone, process_owner


def test_this_process_is_not_gone() -> None:
    assert not is_gone(process_owner("cli"))


def test_process_that_ended_is_gone() -> None:
    code = "from tidegate.pipeline.holders import process_owner; print(process_owner('cli'))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert is_gone(ended.stdout.strip())


def test_process_killed_but_not_yet_waited_for_is_gone() -> None:
    code = (
        "from tidegate.pipeline.holders import process_owner as o;"
        "print(o('cli'), flush=True); import time; time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        alive = is_gone(owner)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert (alive, is_gone(owner)) == (False, True)


def test_process_with_our_number_that_started_at_another_time_is_gone() -> None:
    kind, host, process, started = process_owner("cli").split(":")

    assert is_gone(f"{kind}:{host}:{process}:{int(started) - 1}")


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param("scheduled__2026-02-01T00:00:00+00:00", id="airflow run"),
        pytest.param("manual__x", id="manual run"),
        pytest.param(f"cli:{socket.gethostname()}x:1:1", id="another host"),
        pytest.param("", id="nobody"),
    ],
)
def test_holder_that_is_no_process_of_this_host_is_never_known_to_be_gone(owner: str) -> None:
    assert not is_gone(owner)
