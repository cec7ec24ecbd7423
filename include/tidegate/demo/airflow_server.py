"""Run `airflow standalone` with a home of its own, and leave no process behind.

Only a child process and its environment: Airflow itself is never imported here. Nothing of the
user's environment reaches it but what names the machine: no AIRFLOW__ variable, no Spark setting.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

from tidegate.demo.airflow_client import AirflowClient
from tidegate.errors import AirflowNotStarted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

START_SECONDS = 240
"""A first start takes 30 to 70 s on two busy cores; a loaded machine takes longer."""

_POLITE_SECONDS = 10
_ROOT = Path(__file__).resolve().parents[3]
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "JAVA_HOME")
# Said with every start of a process; tests make sure that both work (AF-1.6, style.md §7).
_QUIET = (
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore:GitWildMatchPattern:DeprecationWarning",
)
# Below the range that Linux gives to outgoing connections, so that nobody takes one by chance.
_FIRST_PORT, _LAST_PORT = 17_000, 32_000


@dataclass(frozen=True)
class Ports:
    """Where one Airflow listens; the log servers would take 8793 and 8794 whatever the API has."""

    api: int
    worker_logs: int
    trigger_logs: int

    @classmethod
    def free(cls) -> Ports:
        """Find ports that nobody listens on."""
        with contextlib.ExitStack() as held:
            return cls(*(_free_port(held) for _ in range(3)))


class AirflowServer:
    """One Airflow in a process session of its own, for as long as the `with` block lasts.

    *Failure:* whatever ends the block, an interrupt in any phase included, every process of the
    session is gone afterwards; database and logs stay in `home`, and the next start goes on with
    them.
    """

    def __init__(self, home: Path, variables: Mapping[str, str]) -> None:
        """Prepare a server.

        Args:
            home: `AIRFLOW_HOME`; made when it is not there.
            variables: what the tasks need besides: `TIDEGATE_HOME`, `TIDEGATE_PIPELINES`.
        """
        self.home = home
        self.log = home / "standalone.log"
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None
        self._client: AirflowClient | None = None

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
            # An interrupt that came while the process was started: nobody else would end it.
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
        """Start the processes; returns at once, see `wait_until_ready`."""
        self.home.mkdir(parents=True, exist_ok=True)
        ports = Ports.free()
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
        self._client = AirflowClient(f"http://127.0.0.1:{ports.api}")

    def wait_until_ready(self, dag_ids: tuple[str, ...], seconds: float = START_SECONDS) -> None:
        """Wait until the API answers, the scheduler is alive and the DAGs are known (AF-2.5).

        Raises:
            AirflowNotStarted: it went down, or took too long.
        """
        deadline = time.monotonic() + seconds
        while not self.client.is_ready(dag_ids):
            self.check_running()
            if time.monotonic() > deadline:
                problem = f"expected it to be ready after {seconds:.0f} s, it is not"
                raise AirflowNotStarted(problem=problem, log=str(self.log))
            time.sleep(0.5)

    def check_running(self) -> None:
        """Make sure that the server is still there.

        Raises:
            AirflowNotStarted: it ended by itself.
        """
        if self._process is None or self._process.poll() is not None:
            code = self._process.returncode if self._process else "none"
            raise AirflowNotStarted(problem=f"it ended with code {code}", log=str(self.log))

    def stop(self) -> None:
        """End every process of the session: SIGINT first, then SIGTERM, then SIGKILL (AF-2.4)."""
        if self._process is None:
            return
        with interrupts_deferred():
            if self._client is not None:
                self._client.close()
            session = self._process.pid
            with contextlib.suppress(ProcessLookupError):
                os.kill(session, signal.SIGINT)
            for sent in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
                if _wait_until_empty(self._process, _POLITE_SECONDS):
                    break
                for member in session_members(session):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(member, sent)
            self._process.wait()
            self._process = None


def airflow_environment(home: Path, ports: Ports, variables: Mapping[str, str]) -> dict[str, str]:
    """Say everything that Airflow and its tasks are to know (AF-2.1)."""
    url = f"http://127.0.0.1:{ports.api}"
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        **_spark_variables(home),
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        "PYTHONPATH": os.pathsep.join([str(_ROOT / "include"), str(_ROOT / "plugins")]),
        "PYTHONWARNINGS": ",".join(_QUIET),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        **{
            f"AIRFLOW__{name}": str(value)
            for name, value in {
                "CORE__DAGS_FOLDER": _ROOT / "dags",
                "CORE__PLUGINS_FOLDER": _ROOT / "plugins",
                "CORE__LOAD_EXAMPLES": False,
                "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": True,
                "CORE__PARALLELISM": 4,
                "CORE__EXECUTOR": "LocalExecutor",
                "API__HOST": "127.0.0.1",
                "API__PORT": ports.api,
                # Without it the workers talk to port 8080, and every task fails (AF-2.3).
                "API__BASE_URL": url,
                "API__WORKERS": 1,
                "API__SECRET_KEY": secrets.token_hex(32),
                "API_AUTH__JWT_SECRET": secrets.token_hex(48),
                "DAG_PROCESSOR__REFRESH_INTERVAL": 30,
                "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 30,
                "LOGGING__WORKER_LOG_SERVER_PORT": ports.worker_logs,
                "LOGGING__TRIGGER_LOG_SERVER_PORT": ports.trigger_logs,
                "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.5,
                # After a kill, the tasks of the scheduler before are taken up again this soon.
                "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": 15,
            }.items()
        },
        **variables,
    }


def session_members(session: int) -> list[int]:
    """List the processes of a session: Airflow's components, tasks, drivers and their workers."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let a short, bounded piece of work finish before an interrupt takes effect."""
    caught: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the main thread may set handlers, and only it is interrupted.
        with contextlib.suppress(ValueError):
            before[number] = signal.signal(number, lambda sent, _frame: caught.append(sent))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])


@contextlib.contextmanager
def ended_like_interrupted() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C, so that they clean up as well."""

    def interrupt(_sent: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_until_empty(process: subprocess.Popen[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        process.poll()
        if not session_members(process.pid):
            return True
        time.sleep(0.2)
    return False


def _spark_variables(home: Path) -> dict[str, str]:
    """Give what Spark needs; a directory of settings would put the class archive out of use."""
    local = home / "spark-local"
    local.mkdir(exist_ok=True)
    variables = {
        "SPARK_LOCAL_DIRS": str(local),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    found = importlib.util.find_spec("pyspark")
    if found is not None and found.submodule_search_locations:
        variables["SPARK_HOME"] = next(iter(found.submodule_search_locations))
    java = Path(sys.prefix) / "java"
    if (java / "home").exists():
        variables["JAVA_HOME"] = str(java / "home")
    if (java / "options").exists():
        variables["SPARK_SUBMIT_OPTS"] = (java / "options").read_text().strip()
    return variables


def _free_port(held: contextlib.ExitStack) -> int:
    for _ in range(200):
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        # All interfaces: the log servers listen on them.
        listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        with contextlib.suppress(OSError):
            listener.bind(("", port))
            return port
    raise AirflowNotStarted(
        problem="no free port between 17000 and 32000", log="the system's list of ports"
    )
