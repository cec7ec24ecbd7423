"""The parts of a made-up Airflow, whose program writes what it does into a file."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from tidegate.demo import airflow_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# The API server answers a moment after it was started; each part has a child, as a task would be.
PROGRAM = """
import http.server, os, signal, subprocess, sys, time
name = sys.argv[1]
with open("events", "a") as events:
    events.write(f"{name} {os.getpid()}\\n")
if name == "db":
    sys.exit(int(os.environ.get("REFUSED", "0")))
print("hello from", name, flush=True)
task = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open("events", "a") as events:
    events.write(f"task-of-{name} {task.pid}\\n")
signal.signal(signal.SIGTERM, lambda *_: (task.kill(), sys.exit(0)))
if name == "api-server":
    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with open("events", "a") as events:
                events.write(f"answer {os.getpid()}\\n")
            self.send_response(200)
            self.end_headers()
    time.sleep(0.5)
    http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Api).serve_forever()
time.sleep(60)
"""
LEADER = """
import os, signal, sys
from tidegate.demo import airflow_parts
airflow_parts._POLITE_SECONDS = 0.2
signal.signal(signal.SIGINT, airflow_parts._interrupt)
url = f"http://127.0.0.1:{os.environ['PORT']}"
sys.exit(airflow_parts.run([sys.executable, "airflow.py"], url))
"""


class Running:
    """A session with all parts, in a folder."""

    def __init__(self, folder: Path, refused: int = 0) -> None:
        self._folder = folder
        (folder / "airflow.py").write_text(PROGRAM)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        variables = {"PORT": str(port), "REFUSED": str(refused)}
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LEADER],
                cwd=folder,
                env=os.environ | variables | {"PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=log,
                start_new_session=True,
            )

    def events(self) -> list[tuple[str, int]]:
        with contextlib.suppress(FileNotFoundError):
            lines = (self._folder / "events").read_text().splitlines()
            return [(line.split()[0], int(line.split()[1])) for line in lines if " " in line]
        return []

    def numbers(self, name: str) -> list[int]:
        return [number for found, number in self.events() if found == name]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for _, number in self.events():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_up(number: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path)
    # The parts behind the API are started together, and write in any order.
    wait_until(lambda: all(found.numbers(f"task-of-{part}") for part in airflow_parts.PARTS))
    yield found
    found.close()


def test_others_are_started_once_the_api_has_answered(running: Running) -> None:
    names = [name for name, _ in running.events() if not name.startswith("task-of-")]

    assert names[:2] == ["db", "api-server"]
    for part in airflow_parts.OTHERS:
        assert names.index("answer") < names.index(part)
    wait_until(lambda: b"triggerer     | hello from triggerer\n" in running.log.read_bytes())


def test_part_that_was_killed_is_started_alone_without_what_it_left(running: Running) -> None:
    (scheduler,), (task,) = running.numbers("scheduler"), running.numbers("task-of-scheduler")

    os.kill(scheduler, signal.SIGKILL)

    wait_until(lambda: len(running.numbers("scheduler")) == 2)
    assert not is_up(task)
    for part in ("api-server", "dag-processor", "triggerer"):
        (still,) = running.numbers(part)
        assert is_up(still)
    assert b"its scheduler ended with code -9" in running.log.read_bytes()


def test_interrupt_ends_all_parts(running: Running) -> None:
    running.process.send_signal(signal.SIGINT)

    assert running.process.wait(30) == 0
    parts = [number for name, number in running.events() if name in airflow_parts.PARTS]
    assert len(parts) == 4
    assert not any(map(is_up, parts))


def test_database_that_cannot_be_prepared_ends_it_with_the_same_code(tmp_path: Path) -> None:
    running = Running(tmp_path, refused=7)
    try:
        assert running.process.wait(30) == 7
        assert [name for name, _ in running.events()] == ["db"]
    finally:
        running.close()


def test_part_that_ends_again_and_again_waits_ever_longer() -> None:
    part = airflow_parts.Part("scheduler", [sys.executable, "-c", "raise SystemExit(1)"])
    waits = []
    now = 0.0
    for _ in range(8):
        part.start(now)
        part.wait()
        part.look(now)
        ended = now
        while not part.is_due(now):
            now += 1
        waits.append(now - ended)

    assert waits == [0, 1, 3, 7, 15, 30, 30, 30]
