"""Spark with a Hive metastore in a process of its own: `python hive_query.py URI SQL …`.

Writes one line of JSON per query: the rows as texts, so that no zone of a reader takes part.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main(uri: str, *queries: str) -> None:
    """Run the queries."""
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    for query in queries:
        frame = session.sql(query)
        texts = frame.selectExpr(
            *(f"CAST(`{name}` AS STRING) AS `{name}`" for name in frame.columns)
        )
        sys.stdout.write(json.dumps([row.asDict() for row in texts.collect()]) + "\n")
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
