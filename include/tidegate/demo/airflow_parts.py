"""Run the parts of one Airflow, the API server first, and start each again that ends by itself.

It does what `airflow standalone` does, which starts all parts at once and never one again. It is
the first process of its session, reads only its environment, and imports nothing of Airflow.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

API = "api-server"
OTHERS = ("scheduler", "dag-processor", "triggerer")
PARTS = frozenset({API, *OTHERS})

_LOOK_SECONDS = 0.5
_ANSWER_SECONDS = 5.0
_POLITE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 30.0
_WELL_SECONDS = 120.0


class Part:
    """One part of Airflow, in a process group of its own.

    *Failure:* processes that a part left behind when it was killed, such as the tasks of a
    scheduler, are ended before it is started again: the new one starts these tasks itself.
    """

    def __init__(self, name: str, airflow: Sequence[str]) -> None:
        """Prepare a part.

        Args:
            name: Airflow's word for it, which is also its command.
            airflow: the command of Airflow.
        """
        self.name = name
        self._command = [*airflow, name]
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._pause = 0.0
        self._next = 0.0

    def look(self, now: float) -> None:
        """Notice its end, and decide when it is due again: ever later if that happens often."""
        process = self._process
        if process is None or process.poll() is None:
            return
        _tell(f"its {self.name} ended with code {process.returncode}")
        _end_group(process.pid)
        self._process = None
        was_well = now - self._started > _WELL_SECONDS
        pause = 0.0 if was_well else self._pause
        self._next, self._pause = now + pause, min(2 * pause + 1, _LONGEST_PAUSE_SECONDS)

    def is_due(self, now: float) -> bool:
        """Return whether it does not run and may be started."""
        return self._process is None and now >= self._next

    def start(self, now: float) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        self._started = now
        copying = threading.Thread(target=_copy, args=(self.name, self._process.stdout))
        copying.daemon = True
        copying.start()

    def ask_to_end(self) -> None:
        """Ask the part to end, as `airflow standalone` does."""
        if self._process is not None:
            self._process.terminate()

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._process is not None:
            self._process.wait()


def run(airflow: Sequence[str], url: str) -> int:
    """Prepare the database, then run all parts until interrupted.

    Args:
        airflow: the command of Airflow.
        url: the address of its API, which answers before any other part is started: a task that
            cannot reach it fails.

    Returns:
        The exit code: 0 if interrupted, Airflow's if the database could not be prepared.
    """
    parts = [Part(name, airflow) for name in (API, *OTHERS)]
    try:
        prepared = subprocess.run([*airflow, "db", "migrate"], check=False).returncode
        if prepared:
            return prepared
        while True:
            for part in parts:
                now = time.monotonic()
                part.look(now)
                if part.is_due(now) and (part.name == API or _answers(url)):
                    part.start(now)
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        return 0
    finally:
        for part in parts:
            part.ask_to_end()
        for part in parts:
            part.wait()


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/v2/version", timeout=_ANSWER_SECONDS):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _end_group(group: int) -> None:
    """End what is left of a process group: SIGTERM first, then SIGKILL."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        deadline = time.monotonic() + _POLITE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.1)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)


def _copy(name: str, said: IO[bytes]) -> None:
    with said:
        for line in said:
            sys.stdout.buffer.write(f"{name:13} | ".encode() + line)
            sys.stdout.buffer.flush()


def _tell(text: str) -> None:
    sys.stdout.buffer.write(f"tidegate      | {text}\n".encode())
    sys.stdout.buffer.flush()


def _interrupt(_sent: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    program = Path(sys.executable).with_name("airflow")
    sys.exit(run([str(program)], os.environ["AIRFLOW__API__BASE_URL"]))
