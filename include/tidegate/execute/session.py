"""Open the Spark that splits are staged in; only names pass through the JVM."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tidegate
from tidegate.execute import worker_daemon
from tidegate.execute.quiet_start import quiet_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*,4]"
"""All cores, with four attempts per task, as on a cluster."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A worker that ran one split has everything imported for the next.
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
}
_DAEMON = "spark.python.daemon.module"
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Executors of a cluster may get this package only after their daemon has started.
    _DAEMON: worker_daemon.__name__,
}

# One thread per Spark core (design §6). Read when the libraries are imported, which in a worker is
# after its start.
_WORKER_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def open_context(name: str, master: str | None = None) -> SparkContext:
    """Open a Spark context without SQL, or return the one that this process has.

    Starting SQL and planning a first query take as long as starting Spark: 1.5 seconds of every
    cold run, as measured.

    Args:
        name: the name that the cluster shows.
        master: such as `local[2]` or `spark://host:7077`; None: that of `spark-submit`, else all
            cores of this machine.
    """
    # Otherwise the system's own python3 would run the tasks (AF-5.3).
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext

    # Only the JVM knows the configuration of `spark-submit`: before it has started, the
    # configuration is empty, and our master would override the cluster's.
    with quiet_start():
        SparkContext._ensure_initialized()
    conf = SparkConf()
    for key, value in _unsaid(conf, name, master):
        conf.set(key, value)
    context = SparkContext.getOrCreate(conf)
    if context.getConf().get(_DAEMON) == worker_daemon.__name__:
        # Whatever starts the first worker, the daemon has to be found.
        prepare_workers(context)
    return context


def open_session(name: str) -> SparkSession:
    """Open a session for frames, on the Spark context of this process or on a new one.

    Args:
        name: the name that the cluster shows.
    """
    from pyspark.sql import SparkSession

    open_context(name)
    return SparkSession.builder.getOrCreate()


def _unsaid(conf: SparkConf, name: str, master: str | None) -> Iterator[tuple[str, str]]:
    """Yield the settings for a new Spark that was not started by `spark-submit`."""
    said = conf.get("spark.master")
    # By default Spark uses all cores, and tries a task only once.
    chosen = master or (LOCAL_MASTER if said in {None, "local[*]"} else said)
    yield "spark.app.name", name
    yield "spark.master", chosen
    for key, value in (_SETTINGS | (_LOCAL_SETTINGS if chosen.startswith("local") else {})).items():
        if not conf.contains(key):
            yield key, value


def prepare_workers(context: SparkContext) -> None:
    """Configure the workers of later jobs: the path of this package, and one thread per core."""
    environment = context.environment
    environment.update(_WORKER_ENVIRONMENT)
    here = str(Path(tidegate.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in known:
        environment["PYTHONPATH"] = os.pathsep.join([here, *filter(None, known)])
