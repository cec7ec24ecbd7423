"""Measure planning alone: many small files, of which none is opened for reading."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.orders import orders_job
from benchmarks.pipelines import NOW, open_job
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

FILES = 5_000


def plan_many_files(folder: Path, files: int = FILES) -> tuple[float, int]:
    """Plan a window of many files.

    Returns:
        Seconds of the plan, from listing the folder to the written plan, and how many files it has.
    """
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    source.mkdir(parents=True)
    first = source / "0.parquet"
    moment = pa.array([0], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": [1], "region": ["eu"], "ordered_at": moment}), first)
    for number in range(1, files):
        os.link(first, source / f"{number}.parquet")
    pipeline = open_job(orders_job(source), folder / "0")
    started = time.perf_counter()
    planned = pipeline.plan(Run("bench", "bench"), NOW)
    seconds = time.perf_counter() - started
    return seconds, sum(item.splits > 0 for item in planned) and files
