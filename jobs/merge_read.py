"""Read and stage the splits of planned windows inside Spark; submitted by the task `merge_read`.

The request is `{"planned": [PlannedWindow, …]}`; splits that have their messages are skipped.
"""

import functools
import sys
from collections.abc import Mapping
from typing import Any

from tidegate.execute.spark import SparkExecutor
from tidegate.model.run import PlannedWindow
from tidegate.pipeline import Pipeline
from tidegate.pipeline.submitted import run_job


def merge_read(executor: SparkExecutor, pipeline: Pipeline, request: Mapping[str, Any]) -> None:
    """Stage each planned window in one Spark application."""
    planned = [PlannedWindow.from_json(item) for item in request["planned"]]
    for window in planned:
        pipeline.stage(window, executor, beside=planned)


if __name__ == "__main__":
    with SparkExecutor() as spark:
        sys.exit(run_job(functools.partial(merge_read, spark)))
