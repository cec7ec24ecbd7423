"""The run whose classes go into the archive: what Tidegate asks of Spark, on two rows."""

from __future__ import annotations

import tempfile

from tidegate.execute.frames import spark_frame
from tidegate.execute.session import open_context, open_session

context = open_context("archive", "local[2]")
context.parallelize(range(2), 2).mapPartitions(list).collect()
session = open_session("archive")
with tempfile.TemporaryDirectory() as folder:
    session.range(0, 2, 1, 1).write.parquet(f"{folder}/rows")
    spark_frame(session, [f"{folder}/rows"]).collect()
context.stop()
