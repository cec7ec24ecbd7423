"""Open Spark with Hudi, in the peers' environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.foreign_session import open_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}


def open_session() -> SparkSession:
    """Open Spark with Hudi's bundle."""
    return open_with(_SETTINGS)
