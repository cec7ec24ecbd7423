"""What a process can tell of another holder of a window or claim."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import psutil
import pytest

from tidegate.ledger.holder import Life
from tidegate.pipeline.state import holders
from tidegate.pipeline.state.holders import is_gone, life_by_time, life_of, process_owner

HOST = socket.gethostname()


@pytest.fixture(scope="module")
def ended_owner() -> str:
    """The name of a process of this host that ended."""
    code = "from tidegate.pipeline.state.holders import process_owner; print(process_owner('cli'))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_this_process_is_not_gone() -> None:
    assert not is_gone(process_owner("cli"))
    assert life_of(process_owner("cli")) is Life.RENEWING


def test_process_that_ended_is_gone(ended_owner: str) -> None:
    assert is_gone(ended_owner)
    assert life_of(ended_owner) is Life.GONE


def test_process_killed_but_not_yet_waited_for_is_gone() -> None:
    code = (
        "from tidegate.pipeline.state.holders import process_owner as o;"
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
    kind, host, process, started, place = process_owner("cli").split(":")

    assert is_gone(f"{kind}:{host}:{process}:{int(started) - 1}:{place}")


def test_process_is_not_gone_after_the_clock_of_its_host_was_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux tells when it booted by the clock, so that it tells another time after a step."""
    owner = process_owner("cli")
    monkeypatch.setattr(psutil, "boot_time", lambda: 0.0)
    monkeypatch.setattr(psutil.Process, "create_time", lambda _self: 1.0)

    assert not is_gone(owner)


@pytest.mark.parametrize("part", ["boot", "namespace"])
def test_process_of_another_container_or_machine_with_the_same_host_name_is_never_known_to_be_gone(
    ended_owner: str, part: str
) -> None:
    name, _, place = ended_owner.rpartition(":")
    boot, namespace = place.split(".")
    other = f"00000000.{namespace}" if part == "boot" else f"{boot}.{int(namespace) + 1}"

    assert not is_gone(f"{name}:{other}")


def test_place_that_cannot_be_read_makes_names_that_are_never_known_to_be_gone(
    ended_owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holders, "_place", lambda: None)

    assert not is_gone(ended_owner)
    assert life_of(process_owner("cli")) is Life.RENEWING


def test_process_that_is_hidden_from_us_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = process_owner("cli")
    monkeypatch.setattr(holders, "_facts", lambda _process: None)

    assert not is_gone(owner)


def test_name_of_a_process_with_any_title_is_told() -> None:
    """The title stands in the middle of what the kernel tells, and may look like the rest."""
    code = (
        "import pathlib; pathlib.Path('/proc/self/comm').write_text('a) Z 1 2 (b');"
        "from tidegate.pipeline.state.holders import process_owner as o, is_gone;"
        "print(is_gone(o('cli')), o('cli').count(':'))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.split() == ["False", "4"]


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param("manual__x", id="run of another scheduler"),
        pytest.param(f"cli:{HOST}x:1:1:0.0", id="another host"),
        pytest.param(f"cli:{HOST}:4194000:1700000000000", id="written before places were named"),
        pytest.param("", id="nobody"),
    ],
)
def test_holder_that_is_no_process_beside_this_one_is_judged_by_time(owner: str) -> None:
    assert not is_gone(owner)
    assert life_of(owner) is Life.RENEWING


def test_run_of_airflow_may_wait_until_a_person_says_that_it_does_not(
    ended_owner: str,
) -> None:
    owner = "airflow:orders_load/scheduled__2026-02-01T00:00:00+00:00"

    assert life_of(owner) is Life.WAITING
    assert life_by_time(owner) is Life.SAID_GONE
    assert life_by_time(ended_owner) is Life.GONE
