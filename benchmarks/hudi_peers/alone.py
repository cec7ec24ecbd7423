"""One piece of work in a fresh process, which says of itself what it took.

Runs in either environment: `python -m benchmarks.hudi_peers.alone WORK TABLE FOLDER ROUNDS`; prints
JSON. Everything is read on one core.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def tidegate(table: str, folder: Path) -> Callable[[], int]:
    """Read the splits of the table as a task does."""
    import pyarrow as pa

    from benchmarks.hudi_peers.jobs import merge_of
    from benchmarks.pipelines import NOW, open_job
    from tidegate.model.run import Run
    from tidegate.pipeline.state.reading import Reading

    pa.set_cpu_count(1)
    pipeline = open_job(merge_of(table), folder)
    (planned,) = pipeline.plan(Run("bench", "bench"), NOW)
    scan, splits = pipeline.stored_plan(planned.sequence)
    pieces = [piece for split in splits for part in split.sub_splits for piece in part.pieces]

    def read() -> int:
        reading = Reading.of(pipeline.config.source, pipeline.source, scan.pin)
        return sum(batch.num_rows for batch in reading.batches(pieces))

    return read


def hudi_rs(table: str, folder: Path) -> Callable[[], int]:
    """Read the file slices of the table with hudi-rs."""
    from hudi import HudiTable

    del folder
    opened = HudiTable(table)

    def read() -> int:
        rows = 0
        for slice in opened.get_file_slices():
            reader = opened.create_file_group_reader_with_options()
            rows += reader.read_file_slice(slice).num_rows
        return rows

    return read


def decode(table: str, folder: Path) -> Callable[[], int]:
    """Decode all columns of the records of all log blocks."""
    import pyarrow as pa

    from benchmarks.hudi_peers.jobs import COLUMNS
    from tidegate.source.hudi.logs.blocks import read_blocks
    from tidegate.source.hudi.logs.decoding import decode_records

    del folder
    logs = [path for path in Path(table).glob(".*.log.*") if path.suffix != ".crc"]
    wanted = {*COLUMNS, "_hoodie_record_key", "_hoodie_commit_time"}

    def read() -> int:
        rows = 0
        for path in logs:
            with pa.OSFile(str(path)) as file:
                for block in list(read_blocks(file, str(path), file.size())):
                    file.seek(block.offset)
                    rows += decode_records(block, file.read(block.length), wanted).num_rows
        return rows

    return read


WORKS: dict[str, Callable[[str, Path], Callable[[], int]]] = {
    "tidegate": tidegate,
    "hudi-rs": hudi_rs,
    "decode": decode,
}


def main(name: str, table: str, folder: str, rounds: str) -> None:
    """Do one work some times and print what the fastest round took."""
    for variable in ("POLARS_MAX_THREADS", "TOKIO_WORKER_THREADS"):
        os.environ[variable] = "1"
    read = WORKS[name](table, Path(folder))
    cpu, rows = [], 0
    for _ in range(int(rounds)):
        started = time.process_time()
        rows = read()
        cpu.append(time.process_time() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    first, best = cpu[0], min(cpu)
    print(json.dumps({"rows": rows, "first": first, "cpu": best, "peak_bytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
