"""Open Spark with Iceberg, in the peers' environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.foreign_session import CORES, open_with

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}


def open_session(warehouse: Path, cores: int = CORES) -> SparkSession:
    """Open Spark with the tables of a folder as catalog `lake`.

    The cache of delete files stays on, because no key of these tables was ever promoted to another
    type, which is where it loses deletes.
    """
    return open_with({**_SETTINGS, "spark.sql.catalog.lake.warehouse": str(warehouse)}, cores)
