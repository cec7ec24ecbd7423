"""Spark with a Hive metastore in a process of its own: `python hive_query.py URI [KEY=VALUE …]`.

Each line that comes in is a query. Each answer is a line of JSON: the rows as texts, so that no
zone of a reader takes part; or a text that says what went wrong.
"""

from __future__ import annotations

import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main(uri: str, *more: str) -> None:
    """Answer queries."""
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
    )
    for key, _, text in (item.partition("=") for item in more):
        builder = builder.config(key, text)
    session = builder.getOrCreate()
    for line in sys.stdin:
        try:
            answer = json.dumps(_rows(session, json.loads(line)))
        except PySparkException as refused:
            answer = json.dumps(str(refused))
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    session.stop()


def _rows(session: SparkSession, query: str) -> list[dict[str, str | None]]:
    frame = session.sql(query)
    texts = frame.selectExpr(*(f"CAST(`{name}` AS STRING) AS `{name}`" for name in frame.columns))
    return [row.asDict() for row in texts.collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])
