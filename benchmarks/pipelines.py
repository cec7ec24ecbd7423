"""Make pipelines for jobs: a file, a target and a ledger of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.job import Job
    from tidegate.pipeline import Pipeline

NOW = datetime(2026, 4, 1, tzinfo=UTC)


def open_job(job: Job, out: Path) -> Pipeline:
    """Make a pipeline for one round of a job; `out` is made and holds all of it."""
    from tidegate.pipeline import open_pipeline

    out.mkdir(parents=True)
    file = out / "pipeline.yaml"
    file.write_text(yaml.safe_dump(describe(job, out), sort_keys=False))
    return open_pipeline(file, ledger=f"sqlite:///{out}/ledger.db")


def describe(job: Job, out: Path) -> dict[str, object]:
    """Give the pipeline file of a job."""
    source: dict[str, object] = {"kind": job.kind, "start": "full"}
    source["metadata" if job.kind == "iceberg" else "path"] = job.source
    if job.start_after is not None:
        source["start"] = {"after": job.start_after}
    read: dict[str, object] = {"mode": job.mode}
    if job.filter:
        read["filter"] = job.filter
    if job.mode == "changelog":
        read["columns"] = [*job.columns, "_change_type"]
    if job.mode == "complete":
        read["keys_repeat"] = True
    return {
        "name": f"bench_{out.name}",
        "source": source | {"read": read},
        "event_time": job.event_time,
        "target": {
            "path": f"{out}/table",
            "partition_by": {job.key: job.partition_column or f"{job.unit}({job.event_time})"},
            "copy_whole_files": job.copy_whole_files,
            "shuffle_by_partition": job.shuffle,
            "sort_by": list(job.sort_by),
        },
        # Values of a column are not the ends of days.
        "commit": {"trigger": "process-time" if job.partition_column else "partition-time"},
    }
