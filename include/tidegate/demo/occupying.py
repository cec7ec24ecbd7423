"""Let one process at a time run the Airflow of a home, on the same ports as before.

What a process that was killed left behind is ended by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import psutil

from tidegate.demo.airflow_environment import Ports
from tidegate.errors import AirflowRunning
from tidegate.storage.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_SECONDS = 0.2


class Occupation:
    """The right of this process to run a home's Airflow, until it is given up.

    *Failure:* the system gives it up when this process ends; the note of what ran stays.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def note(self, session: int, ports: Ports) -> None:
        """Write down which processes are running and where they listen."""
        noted = {"process": os.getpid(), "session": session, "ports": ports.to_json()}
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(noted))
        self._file.flush()

    def ports(self) -> Ports:
        """Return the ports of last time, each as long as it is free."""
        return Ports.free(self._noted().get("ports", {}))

    def end_remains(self, polite_seconds: float) -> None:
        """End the processes of a predecessor that was killed."""
        session, home = self._noted().get("session"), Path(self._file.name).parent
        if session:
            end_session(lambda: _working_in(home, session_members(session)), polite_seconds)

    def give_up(self) -> None:
        """Let another process run it."""
        self._file.close()

    def _noted(self) -> dict[str, Any]:
        return _read(self._file)


def occupy(home: Path) -> Occupation:
    """Take the right to run a home's Airflow.

    Raises:
        AirflowRunning: another process has it.
        StorageDenied: the home cannot be written.
    """
    place = home / "running.json"
    try:
        file = place.open("a+", encoding="utf-8")
    except OSError as refused:
        raise refusal(str(place), refused) from refused
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            noted = _read(file)
        ports = noted.get("ports", {})
        url = f"http://127.0.0.1:{ports['api']}" if ports else "an address that is not known yet"
        raise AirflowRunning(home=str(home), process=noted.get("process", "?"), url=url) from None
    return Occupation(file)


def session_members(session: int) -> list[int]:
    """Return the processes of a session: Airflow's components, tasks, drivers and their workers."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def end_session(members: Callable[[], list[int]], polite_seconds: float) -> None:
    """End processes: SIGTERM first, then SIGKILL."""
    for sent in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        for member in members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, sent)
        if wait_until_empty(members, polite_seconds):
            return


def wait_until_empty(members: Callable[[], list[int]], seconds: float) -> bool:
    """Wait until there are no more processes; return whether that came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not members():
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def _working_in(home: Path, processes: list[int]) -> list[int]:
    """Leave out processes of a session that got the number of an old one by chance."""
    found = []
    for number in processes:
        with contextlib.suppress(psutil.Error):
            if Path(psutil.Process(number).cwd()).is_relative_to(home.resolve()):
                found.append(number)
    return found


def _read(file: IO[str]) -> dict[str, Any]:
    file.seek(0)
    try:
        noted: dict[str, Any] = json.load(file)
    except ValueError:
        return {}
    return noted
