"""One piece of work in a fresh process, which says of itself what it took.

Runs in either environment: `python -m benchmarks.peers.alone WORK JOB FOLDER`; prints JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

Findings = dict[str, float]


def plan(job: Job, folder: Path) -> Findings:
    """Plan a window: everything up to the written plan."""
    from benchmarks.pipelines import NOW, open_job
    from tidegate.model.run import Run

    pipeline = open_job(job, folder)
    wall, cpu = time.perf_counter(), time.process_time()
    planned = pipeline.plan(Run("bench", "bench"), NOW)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "splits": sum(item.splits for item in planned),
    }


def tidegate(job: Job, folder: Path) -> Findings:
    """Read the first split as a task does, on one core."""
    import pyarrow as pa

    from benchmarks.pipelines import NOW, open_job
    from tidegate.model.run import Run
    from tidegate.pipeline.state.reading import Reading

    pa.set_cpu_count(1)
    pipeline = open_job(job, folder)
    (planned,) = pipeline.plan(Run("bench", "bench"), NOW)
    scan, splits = pipeline.stored_plan(planned.sequence)
    reading = Reading.of(pipeline.config.source, pipeline.source, scan.pin)
    pieces = [piece for part in splits[0].sub_splits for piece in part.pieces]
    return _first_and_all(lambda: reading.batches(pieces)) | {"splits": len(splits)}


def pyiceberg(job: Job, folder: Path) -> Findings:
    """Read the table as pyiceberg streams it, on one core."""
    import pyarrow as pa
    from pyiceberg.table import StaticTable

    del folder
    pa.set_cpu_count(1)
    table = StaticTable.from_metadata(job.source)
    scan = table.scan(row_filter=job.filter)
    return _first_and_all(scan.to_arrow_batch_reader)


def _first_and_all(read: Callable[[], Iterator[pa.RecordBatch]]) -> Findings:
    started = time.perf_counter()
    batches = iter(read())
    rows = next(batches).num_rows
    first = time.perf_counter() - started
    rows += sum(batch.num_rows for batch in batches)
    return {"first": first, "all": time.perf_counter() - started, "rows": rows}


WORKS: dict[str, Callable[[Job, Path], Findings]] = {
    "plan": plan,
    "tidegate": tidegate,
    "pyiceberg": pyiceberg,
}


def main(name: str, job: str, folder: str) -> None:
    """Do one work and print what it took."""
    found = WORKS[name](Job.read(Path(job)), Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found | {"peak_bytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
