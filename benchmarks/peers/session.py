"""Open Spark with Iceberg, in the peers' environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CORES = len(os.sched_getaffinity(0))
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.extensions": ("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}


def open_session(warehouse: Path, cores: int = CORES) -> SparkSession:
    """Open Spark with the tables of a folder as catalog `lake`.

    The jar comes with `--jars`; the cache of delete files stays on, because no key of these tables
    was ever promoted to another type, which is where it loses deletes.
    """
    from pyspark.sql import SparkSession

    settings = _SETTINGS | {"spark.sql.catalog.lake.warehouse": str(warehouse)}
    builder = SparkSession.builder.master(f"local[{cores}]").appName("peers")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
