"""What only Spark tasks do: one thread per core, no shuffle, the package found, files as frames."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from tidegate.execute.frames import spark_frame
from tidegate.execute.session import open_session
from tidegate.execute.spark import SparkExecutor
from tidegate.model.message import CommitMessage, Staged

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def look_around(plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
    """Report of the worker as row counts by name."""
    import polars as pl

    import tidegate.pipeline.load.staging  # noqa: F401 (the product's task can be imported)

    seen = {
        "polars_threads": pl.thread_pool_size(),
        "arrow_threads": pa.cpu_count(),
        "pandas": int("pandas" in sys.modules),
        "same_python": int(sys.executable == plan_uri),
    }
    return (CommitMessage(str(index), attempt, Staged(rule_hits=seen)),)


@pytest.fixture
def messages(spark: SparkSession) -> list[CommitMessage]:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        return list(
            SparkExecutor(spark.sparkContext).run(look_around, sys.executable, range(4), "w1")
        )
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_task_has_one_thread_of_each_library(messages: list[CommitMessage]) -> None:
    assert {
        (m.staged.rule_hits["polars_threads"], m.staged.rule_hits["arrow_threads"])
        for m in messages
    } == {(1, 1)}


def test_task_runs_the_drivers_python(messages: list[CommitMessage]) -> None:
    assert all(message.staged.rule_hits["same_python"] for message in messages)


def test_run_each_split_is_a_task_of_one_stage(
    messages: list[CommitMessage], spark: SparkSession
) -> None:
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None)]
    last = max((job for job in jobs if job is not None), key=lambda job: job.jobId)

    (stage,) = [tracker.getStageInfo(stage) for stage in last.stageIds]

    assert stage is not None
    assert stage.numTasks == len(messages) == 4


def test_open_session_takes_the_one_that_is_there(spark: SparkSession) -> None:
    assert open_session("another").sparkContext is spark.sparkContext
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_open_context_leaves_to_spark_submit_what_it_says(tmp_path: Path) -> None:
    script = tmp_path / "said.py"
    script.write_text(
        "from tidegate.execute.session import open_context, open_session\n"
        "conf, zone = open_context('ours').getConf(), 'spark.sql.session.timeZone'\n"
        "print(conf.get('spark.master'), conf.get('spark.ui.enabled'))\n"
        "print(conf.get('spark.sql.catalogImplementation'), open_session('x').conf.get(zone))"
    )
    options = ["--master", "local[3]"]
    for said in ("spark.ui.enabled=true", "spark.sql.session.timeZone=Asia/Tokyo"):
        options += ["--conf", said]

    done = subprocess.run(
        ["spark-submit", *options, script], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["local[3]", "true", "in-memory", "Asia/Tokyo"]


def test_workers_of_a_local_spark_import_the_installed_pyspark(tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(
        "import sys\n"
        "from tidegate.execute.session import open_context\n"
        "context = open_context('ours', 'local[1]')\n"
        "found = context.parallelize([0], 1).map(lambda _: sys.modules['pyspark'].__file__)\n"
        "print(*found.collect())"
    )

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == [pyspark.__file__]


def test_executor_with_a_given_context_leaves_it_open(spark: SparkSession) -> None:
    with SparkExecutor(spark.sparkContext):
        pass

    assert spark.range(1).count() == 1


def test_spark_frame_reads_named_columns_of_named_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "dt=2026-03-01"
    folder.mkdir()
    for number in range(3):
        rows = pa.table({"id": [number], "a.b": [str(number)], "unread": [0.0]})
        pq.write_table(rows, folder / f"part-{number}.parquet")
    files = [str(folder / f"part-{number}.parquet") for number in (0, 2)]

    frame = spark_frame(spark, files, ["a.b", "id"])

    assert frame.columns == ["a.b", "id"]
    assert sorted(tuple(row) for row in frame.collect()) == [("0", 0), ("2", 2)]
    assert spark_frame(spark, files).columns == ["id", "a.b", "unread"]
