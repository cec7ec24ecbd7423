"""Make the rows of the comparison of partitioned writes: every file has rows of every partition.

`python -m benchmarks.partitioned_rows --folder FOLDER --rows N --partitions N …`
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.job import Job

ROWS = 20_000_000
PARTITIONS = (1, 100, 2_000)
SUMS = (
    "sum(id)",
    "sum(round(amount * 100)::BIGINT)",
    "bit_xor(hash(text))",
    "sum(epoch_us(happened_at) % 1000003)",
)
FOLDER = Path(tempfile.gettempdir()) / "tidegate-bench-partitioned"

_FILES = 8
_SEED = 20
_FIRST = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
_SPAN = 30 * 86_400 * 1_000_000
_TEXT_CHARACTERS = 8
_HALF_CHARACTERS = _TEXT_CHARACTERS // 2


def make_rows(folder: Path, rows: int, partitions: int) -> Path:
    """Write the files that are not there yet; gives the folder with them.

    Rows differ between numbers of partitions in the column `part` only.

    Args:
        folder: for the folders of all numbers of partitions.
        rows: in all files.
        partitions: `part` is a number below it, in no order.
    """
    found = folder / f"rows-{rows}-partitions-{partitions}"
    found.mkdir(parents=True, exist_ok=True)
    bounds = [rows * index // _FILES for index in range(_FILES + 1)]
    for index, (first, end) in enumerate(pairwise(bounds)):
        path = found / f"rows-{index:03d}.parquet"
        if not path.exists():
            unfinished = found / f".{path.name}"
            table = _rows(index, first, end, partitions)
            pq.write_table(table, unfinished, compression="zstd", row_group_size=1 << 18)
            unfinished.rename(path)
    return found


def partitioned_job(source: Path) -> Job:
    """Keep everything, write by the value of `part`."""
    return Job(
        kind="files",
        source=str(source),
        filter="",
        event_time="happened_at",
        unit="day",
        sums=SUMS,
        partition_column="part",
    )


def _rows(index: int, first: int, end: int, partitions: int) -> pa.Table:
    count = end - first
    random = np.random.default_rng((_SEED, index))
    return pa.table(
        {
            "id": np.arange(first, end),
            "amount": np.round(random.gamma(2.0, 40.0, count), 2),
            "text": _texts(random, count),
            "happened_at": pa.array(_FIRST + random.integers(0, _SPAN, count), pa.timestamp("us")),
            "part": random.integers(0, partitions, count, dtype=np.int32),
        }
    )


def _texts(random: np.random.Generator, count: int) -> pa.Array:
    """Make short text of hexadecimal digits."""
    digits = np.frombuffer(random.bytes(count * _HALF_CHARACTERS).hex().encode(), dtype=np.uint8)
    offsets = np.arange(count + 1, dtype=np.int32) * _TEXT_CHARACTERS
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits))


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitioned_rows")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--partitions", type=int, nargs="+", default=list(PARTITIONS))
    given = parser.parse_args()
    for partitions in given.partitions:
        print(make_rows(given.folder, given.rows, partitions))


if __name__ == "__main__":
    main()
