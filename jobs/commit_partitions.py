"""Commit checked publications, one partition after the other, in a plain Python process.

The request is `{"owner": run, "publications": [[partition path, digest], …]}`. Airflow's task
`commit` makes the same call in its own process; this file is for other schedulers and machines.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidegate.pipeline import Pipeline
from tidegate.pipeline.submitted import run_job
from tidegate.target.partitioning import Partitioning


def commit_partitions(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
    """Make each checked publication stand."""
    partitioning = Partitioning.of(pipeline.config.target)
    for path, digest in request["publications"]:
        partition = partitioning.parse(path)
        pipeline.commit(partition, digest, request["owner"], datetime.now(UTC))


if __name__ == "__main__":
    sys.exit(run_job(commit_partitions))
