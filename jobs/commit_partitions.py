"""Commit checked publications, one partition after the other, in a plain Python process.

The request is `{"owner": run, "publications": [[partition path, digest], …]}`. Airflow's task
`commit` makes the same call in its own process; this file is for other schedulers and machines.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidegate.model.partition import Partition
from tidegate.pipeline import Pipeline
from tidegate.pipeline.submitted import run_job


def commit_partitions(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
    """Make each checked publication stand."""
    names = tuple(field.name for field in pipeline.config.target.partition_by)
    for path, digest in request["publications"]:
        partition = Partition.parse(path, names)
        pipeline.commit(partition, digest, request["owner"], datetime.now(UTC))


if __name__ == "__main__":
    sys.exit(run_job(commit_partitions))
