"""Open Spark with Hudi, in the peers' environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = len(os.sched_getaffinity(0))
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}


def open_session() -> SparkSession:
    """Open Spark; the bundle comes with `--jars`."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{CORES}]").appName("peers")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
