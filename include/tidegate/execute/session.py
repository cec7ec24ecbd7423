"""Open the Spark that splits are staged in; the JVM moves nothing but names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tidegate
from tidegate.execute import worker_daemon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkConf, SparkContext
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
_DAEMON = "spark.python.daemon.module"
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Executors of a cluster may get this package only after their daemon has started.
    _DAEMON: worker_daemon.__name__,
}

# A Spark core is one thread of ours (design §6). Read when the libraries are imported, which in a
# worker is after it started.
_WORKER_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def open_context(name: str, master: str | None = None) -> SparkContext:
    """Open a Spark without its SQL, or take the one this process has.

    Starting SQL and planning a first query take as long as starting Spark: a second and a half of
    every cold run, measured.

    Args:
        name: shown by the cluster.
        master: such as `local[2]` or `spark://host:7077`; None: what `spark-submit` says, else all
            cores of this machine.
    """
    # Otherwise the system's own python3 would run the tasks (AF-5.3).
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext

    # Only the JVM knows what `spark-submit` was told: asked before it is there, a configuration is
    # empty, and our master would win over the cluster's.
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
    """Open a session for frames, on the Spark that this process has or on a new one.

    Args:
        name: shown by the cluster.
    """
    from pyspark.sql import SparkSession

    open_context(name)
    return SparkSession.builder.getOrCreate()


def _unsaid(conf: SparkConf, name: str, master: str | None) -> Iterator[tuple[str, str]]:
    """Yield the settings for a new Spark on which `spark-submit` has no say."""
    said = conf.get("spark.master")
    # Without a word from anybody Spark chooses all cores itself, and tries a task once.
    chosen = master or (LOCAL_MASTER if said in {None, "local[*]"} else said)
    yield "spark.app.name", name
    yield "spark.master", chosen
    for key, value in (_SETTINGS | (_LOCAL_SETTINGS if chosen.startswith("local") else {})).items():
        if not conf.contains(key):
            yield key, value


def prepare_workers(context: SparkContext) -> None:
    """Tell the workers of later jobs where this package is, and to use one thread per core."""
    environment = context.environment
    environment.update(_WORKER_ENVIRONMENT)
    here = str(Path(tidegate.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in known:
        environment["PYTHONPATH"] = os.pathsep.join([here, *filter(None, known)])
