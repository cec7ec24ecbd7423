"""Configure the environment of the demo's Airflow and its tasks: ports, folders, settings.

Of the user's environment they receive only what describes the machine: no AIRFLOW__ variable, no
Spark setting, no proxy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import socket
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import tenacity

from tidegate.errors import AirflowNotStarted
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROOT = Path(__file__).resolve().parents[3]
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "JAVA_HOME")
# Set at every start of a process; tests check that both work (AF-1.6).
_QUIET = (
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore:GitWildMatchPattern:DeprecationWarning",
)
# Below the range that Linux uses for outgoing connections, so that none is taken by chance.
_FIRST_PORT, _LAST_PORT = 17_000, 32_000
# A process that was killed closes its port when its last thread has ended.
_UNTIL_TAKEN = tenacity.Retrying(
    retry=tenacity.retry_if_not_result(bool),
    wait=tenacity.wait_fixed(0.2),
    stop=tenacity.stop_after_delay(3),
    retry_error_callback=lambda _: False,
)


@dataclass(frozen=True)
class Ports(Value):
    """The ports of one Airflow; the log servers use 8793 and 8794 unless configured otherwise."""

    api: int
    worker_logs: int
    trigger_logs: int

    @classmethod
    def free(cls, wanted: Mapping[str, int] | None = None) -> Ports:
        """Return ports that nobody listens on.

        Args:
            wanted: numbers by name that are taken if they are free.
        """
        known = wanted or {}
        with contextlib.ExitStack() as held:
            return cls(*(_free_port(held, known.get(item.name)) for item in fields(cls)))


def airflow_environment(home: Path, ports: Ports, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of Airflow and its tasks (AF-2.1)."""
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
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2,4]"}),
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
                # Otherwise the workers use port 8080, and every task fails (AF-2.3).
                "API__BASE_URL": url,
                "API__WORKERS": 1,
                "API__SECRET_KEY": secrets.token_hex(32),
                "API_AUTH__JWT_SECRET": secrets.token_hex(48),
                "DAG_PROCESSOR__REFRESH_INTERVAL": 30,
                "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 30,
                "LOGGING__WORKER_LOG_SERVER_PORT": ports.worker_logs,
                "LOGGING__TRIGGER_LOG_SERVER_PORT": ports.trigger_logs,
                "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.5,
                # After a kill, the tasks of the previous scheduler are resumed this soon.
                "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": 15,
            }.items()
        },
        **variables,
    }


def _spark_variables(home: Path) -> dict[str, str]:
    """Return Spark's variables; a directory of settings would disable the class archive."""
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


def _free_port(held: contextlib.ExitStack, wanted: int | None = None) -> int:
    if wanted is not None and _UNTIL_TAKEN(_is_taken, held, wanted):
        return wanted
    for _attempt in range(200):
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        if _is_taken(held, port):
            return port
    raise AirflowNotStarted(
        problem="no free port between 17000 and 32000", log="the system's list of ports"
    )


def _is_taken(held: contextlib.ExitStack, port: int) -> bool:
    """Take a port until the end of a context; return whether it was free."""
    # All interfaces: the log servers listen on them.
    listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    # Connections of the last listener may linger, and keep nobody from listening.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("", port))
    except OSError:
        return False
    return True
