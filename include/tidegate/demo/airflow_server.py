"""Run `airflow standalone` with its own home, and leave no process behind.

It is only a child process: Airflow itself is never imported here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

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
    from collections.abc import Mapping
    from types import TracebackType

START_SECONDS = 240
"""A first start takes 30 to 70 s on two busy cores; a loaded machine takes longer."""

_POLITE_SECONDS = 10
_PARTS = frozenset({"scheduler", "dag-processor", "api-server", "triggerer"})


class AirflowServer:
    """One Airflow in its own process session, for the duration of the `with` block.

    *Failure:* whatever ends the block, including an interrupt in any phase, every process of the
    session has ended afterwards; database and logs stay in `home`, and the next start continues
    with them.
    """

    def __init__(self, home: Path, variables: Mapping[str, str]) -> None:
        """Prepare a server.

        Args:
            home: `AIRFLOW_HOME`; created if it does not exist.
            variables: further variables for the tasks: `TIDEGATE_HOME`, `TIDEGATE_PIPELINES`.
        """
        self.home = home
        self.log = home / "standalone.log"
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None
        self._client: AirflowClient | None = None
        self._occupation: Occupation | None = None
        self._parts: set[str] = set()

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
                [Path(sys.executable).with_name("airflow"), "standalone"],
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

        Raises:
            AirflowNotStarted: it ended, or took too long.
        """
        deadline = time.monotonic() + seconds
        while not self.client.is_ready(dag_ids):
            self.check_running()
            if time.monotonic() > deadline:
                problem = f"expected it to be ready after {seconds:.0f} s, it is not"
                raise AirflowNotStarted(problem=problem, log=str(self.log))
            time.sleep(0.5)

    def check_running(self) -> None:
        """Check that the server and the parts that it has started are still running.

        Raises:
            AirflowNotStarted: it ended by itself, or a part of it did, without which it goes on.
        """
        if self._process is None or self._process.poll() is not None:
            code = self._process.returncode if self._process else "none"
            raise AirflowNotStarted(problem=f"it ended with code {code}", log=str(self.log))
        running = _running_parts(self._process.pid)
        self._parts |= running
        ended = sorted(self._parts - running)
        if ended:
            problem = f"its {' and its '.join(ended)} ended"
            raise AirflowNotStarted(problem=problem, log=str(self.log))

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


def _running_parts(standalone: int) -> set[str]:
    """Return the names of the parts of `airflow standalone` that run."""
    found: set[str] = set()
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(standalone).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                # One part gives itself a title, `airflow api_server -- host:…`.
                command = " ".join(child.cmdline()).replace("_", "-").split()
                found |= _PARTS.intersection(command)
    return found
