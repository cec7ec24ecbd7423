"""Open the Spark session that splits are staged in; the JVM moves nothing but names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tidegate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*,4]"
"""All cores; a task is tried four times, as on a cluster."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A worker that ran one split has everything imported for the next one.
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
}
_LOCAL_SETTINGS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

# A Spark core is one thread of ours (design §6). Read when the libraries are imported, which in a
# worker is after it started.
_WORKER_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def open_session(name: str, master: str | None = None) -> SparkSession:
    """Open a session, or take the one this process has.

    Args:
        name: shown by the cluster.
        master: such as `local[2]` or `spark://host:7077`; None: what `spark-submit` says, else all
            cores of this machine.
    """
    # Otherwise the system's own python3 would run the tasks (AF-5.3).
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf()
    chosen = master or conf.get("spark.master", LOCAL_MASTER)
    settings = _SETTINGS | (_LOCAL_SETTINGS if chosen.startswith("local") else {})
    builder = SparkSession.builder.appName(name).master(chosen)
    for key, value in settings.items():
        if not conf.contains(key):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def prepare_workers(session: SparkSession) -> None:
    """Tell the workers of later jobs where this package is, and to use one thread per core."""
    environment = session.sparkContext.environment
    environment.update(_WORKER_ENVIRONMENT)
    here = str(Path(tidegate.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in known:
        environment["PYTHONPATH"] = os.pathsep.join([here, *filter(None, known)])
