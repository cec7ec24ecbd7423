"""Find what a submitted driver needs: connection, binary, environment (AF-2.10, AF-5.3)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

import tidegate
from tidegate.errors import EnvironmentIncomplete
from tidegate_airflow.connections import driver_variables

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidegate.config import PipelineConfig

SPARK_CONNECTION = "spark_default"

_INCLUDE = Path(tidegate.__file__).parents[1]
JOBS = _INCLUDE.parent / "jobs"
"""The folder of the entry points that are submitted."""


def spark_connection() -> Connection:
    """Return the Spark connection; without one spark-submit would silently use YARN (AF-2.10).

    Raises:
        EnvironmentIncomplete: it is not defined.
    """
    try:
        return BaseHook.get_connection(SPARK_CONNECTION)
    except AirflowNotFoundException as missing:
        variable = f"AIRFLOW_CONN_{SPARK_CONNECTION.upper()}"
        raise EnvironmentIncomplete(
            what=f"the Airflow connection '{SPARK_CONNECTION}'",
            remedy=(
                f'Set {variable}=\'{{"conn_type":"spark","host":"local[2]"}}\' for the scheduler, '
                "or add the connection under Admin, Connections."
            ),
        ) from missing


def driver_environment(connection: Connection, config: PipelineConfig) -> dict[str, str] | None:
    """Return the environment of the driver's process; None if Spark forbids setting it (AF-5.3)."""
    from tidegate.pipeline.state.holders import process_owner

    master = connection.host or ""
    if master.startswith("spark://") and connection.extra_dejson.get("deploy-mode") == "cluster":
        return None
    paths = [str(_INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "TIDEGATE_SUBMITTED_BY": process_owner("task"),
        **driver_variables(config),
    }


def spark_binary(connection: Connection) -> str | None:
    """Return the spark-submit beside this Python, unless the connection names one."""
    beside = Path(sys.executable).with_name("spark-submit")
    return (
        str(beside) if beside.exists() and "spark-binary" not in connection.extra_dejson else None
    )
