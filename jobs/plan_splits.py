"""Take a run's window and plan its splits; submitted by the task `plan_splits` when they are many.

The request is `{"run": Run}`. The plan stays in the work directory, where the task finds it.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidegate.model.run import Run
from tidegate.pipeline import Pipeline
from tidegate.pipeline.submitted import run_job


def plan_splits(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
    """Plan the window of one run."""
    pipeline.plan(Run.from_json(request["run"]), datetime.now(UTC))


if __name__ == "__main__":
    sys.exit(run_job(plan_splits))
