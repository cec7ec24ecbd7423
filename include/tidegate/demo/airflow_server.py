"""Run Airflow with its own home, and leave no process behind.

Its parts are child processes of one child (`airflow_parts`), which starts one again that ends.
Airflow itself is never imported here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

import psutil

from tidegate.demo import airflow_parts
from tidegate.demo.airflow_client import AirflowClient
from tidegate.demo.airflow_environment import airflow_environment
from tidegate.demo.interrupts import interrupts_deferred
from tidegate.demo.occupying import (
    Occupation,
    end_session,
    occupy,
    session_members,
    wait_until_empty,
)
from tidegate.errors import AirflowNotStarted
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

START_SECONDS = 240
"""So long a start may show no progress. On two busy cores the whole start takes 30 to 70 s."""

_POLITE_SECONDS = 10
_RECENT_SECONDS = 15 * 60
_MOST_ENDS = 5
"""A part that ended so often in so many seconds is not mended by one start more."""


class AirflowServer:
    """One Airflow in its own process session, for the duration of the `with` block.

    *Failure:* whatever ends the block, including an interrupt in any phase, every process of the
    session has ended afterwards; database and logs stay in `home`, and the next start continues
    with them.
    """

    def __init__(
        self,
        home: Path,
        variables: Mapping[str, str],
        *,
        tell: Callable[[str], None] = lambda _text: None,
        revive: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare a server.

        Args:
            home: `AIRFLOW_HOME`; created if it does not exist.
            variables: further variables for the tasks: `TIDEGATE_HOME`, `TIDEGATE_PIPELINES`.
            tell: is told of a part that ended and is started again.
            revive: starts the database again if it ended, and returns whether it had to. All parts
                end because of that.
        """
        self.home = home
        self.log = home / "standalone.log"
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None
        self._client: AirflowClient | None = None
        self._occupation: Occupation | None = None
        self._tell = tell
        self._revive = revive
        self._parts: dict[str, int] = {}
        self._ends: dict[str, list[float]] = {}

    @property
    def client(self) -> AirflowClient:
        """The REST client of the running server."""
        if self._client is None:
            raise AirflowNotStarted(problem="it is not running", log=str(self.log))
        return self._client

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            # An interrupt during the start of the process: nobody else would end it.
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the processes and return at once, see `wait_until_ready`."""
        self._occupation = self._occupy()
        ports = self._occupation.ports()
        environment = airflow_environment(self.home, ports, self._variables)
        with interrupts_deferred(), self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", airflow_parts.__name__],
                env=environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._occupation.note(self._process.pid, ports)
        self._client = AirflowClient(f"http://127.0.0.1:{ports.api}")

    def wait_until_ready(self, dag_ids: tuple[str, ...], seconds: float = START_SECONDS) -> None:
        """Wait until the API answers, the scheduler is alive and the DAGs are known (AF-2.5).

        Args:
            dag_ids: the DAGs that must be known.
            seconds: how long nothing more may have come up: a loaded machine is slow, not broken.

        Raises:
            AirflowNotStarted: it ended, or made no progress.
        """
        up: frozenset[str] = frozenset()
        deadline = time.monotonic() + seconds
        while not self.client.is_ready(dag_ids):
            self.check_running()
            more = up | self._parts.keys() | self.client.reached(dag_ids)
            if more != up:
                up, deadline = more, time.monotonic() + seconds
            if time.monotonic() > deadline:
                found = f"found {', '.join(sorted(up)) or 'nothing'}, and nothing more for"
                problem = f"expected it to be ready, {found} {seconds:.0f} s"
                raise AirflowNotStarted(problem=problem, log=str(self.log))
            time.sleep(0.5)

    def check_running(self) -> None:
        """Check that the server is running; a part that ended is told, once.

        Raises:
            AirflowNotStarted: it ended by itself, or a part of it ends again and again.
        """
        # Asked first: Airflow's parts end because of it.
        revived = self._revive()
        if self._process is None or self._process.poll() is not None:
            code = self._process.returncode if self._process else "none"
            raise AirflowNotStarted(problem=f"it ended with code {code}", log=str(self.log))
        running = _running_parts(self._process.pid)
        if revived:
            self._ends.clear()
        now = time.monotonic()
        for name, process in sorted(self._parts.items()):
            if running.get(name) != process:
                self._note_end(name, now)
        self._parts = running

    def _note_end(self, name: str, now: float) -> None:
        ends = [end for end in self._ends.get(name, ()) if now - end < _RECENT_SECONDS]
        self._ends[name] = [*ends, now]
        if len(ends) >= _MOST_ENDS:
            problem = f"its {name} ended again and again"
            raise AirflowNotStarted(problem=problem, log=str(self.log))
        ended = AirflowNotStarted(problem=f"its {name} ended", log=str(self.log))
        self._tell(f"{ended} Starting it again …")

    def stop(self) -> None:
        """End every process of the session: SIGINT first, then SIGTERM, then SIGKILL (AF-2.4)."""
        with interrupts_deferred():
            self._end_process()
            occupation, self._occupation = self._occupation, None
            if occupation is not None:
                occupation.give_up()

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if self._client is not None:
            self._client.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)

        def members() -> list[int]:
            process.poll()
            return session_members(process.pid)

        if not wait_until_empty(members, _POLITE_SECONDS):
            end_session(members, _POLITE_SECONDS)
        process.wait()

    def _occupy(self) -> Occupation:
        LocalStorage().make_dirs(str(self.home))
        occupation = occupy(self.home)
        occupation.end_remains(_POLITE_SECONDS)
        return occupation


def _running_parts(first: int) -> dict[str, int]:
    """Return the process of each part that runs, of those that the session's first one started."""
    found: dict[str, int] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(first).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                # One part gives itself a title, `airflow api_server -- host:…`.
                command = " ".join(child.cmdline()).replace("_", "-").split()
                found |= dict.fromkeys(airflow_parts.PARTS.intersection(command), child.pid)
    return found
