"""Read and stage the splits of planned windows inside Spark; submitted by the task `merge_read`.

The request is `{"planned": [PlannedWindow, …]}`; splits that have their messages are skipped.
"""

import sys
from collections.abc import Mapping
from typing import Any

from tidegate.execute.spark import SparkExecutor
from tidegate.model.run import PlannedWindow
from tidegate.pipeline import Pipeline
from tidegate.pipeline.submitted import run_job


def merge_read(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
    """Stage each planned window in one Spark application."""
    with SparkExecutor() as executor:
        for planned in request["planned"]:
            pipeline.stage(PlannedWindow.from_json(planned), executor)


if __name__ == "__main__":
    sys.exit(run_job(merge_read))
