"""Make the data of the benchmark: orders in ten files that each hold rows of all ten days."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

FILES = 10
ROWS_PER_FILE = 1_000_000
DAYS = 10
REGIONS = ("eu", "us", "apac", "latam", "mea")
KEPT_REGIONS = ("eu", "us")

_FIRST_DAY = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
_DAY = 86_400 * 1_000_000


def make_orders(folder: Path, files: int = FILES, rows: int = ROWS_PER_FILE) -> int:
    """Write the files that are not there yet.

    Returns:
        Bytes of all files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(files):
        path = folder / f"orders-{index:03d}.parquet"
        if not path.exists():
            unfinished = folder / f".{path.name}"
            pq.write_table(
                _orders(index, rows), unfinished, compression="zstd", row_group_size=1 << 18
            )
            unfinished.rename(path)
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def repeat_orders(folder: Path, source: Path, times: int) -> None:
    """Give the same files under several names: more input without more disk."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(times):
        for path in source.glob("*.parquet"):
            link = folder / f"{index:03d}-{path.name}"
            if not link.exists():
                os.link(path, link)


def _orders(index: int, rows: int) -> pa.Table:
    random = np.random.default_rng(index)
    return pa.table(
        {
            "order_id": np.arange(index * rows, (index + 1) * rows),
            "customer_id": random.integers(0, 2_000_000, rows),
            "amount": np.round(random.gamma(2.0, 40.0, rows), 2),
            "note": _notes(random, rows),
            "region": pa.array(REGIONS).take(pa.array(random.integers(0, len(REGIONS), rows))),
            "ordered_at": pa.array(
                _FIRST_DAY + random.integers(0, DAYS * _DAY, rows), pa.timestamp("us", "UTC")
            ),
        }
    )


def _notes(random: np.random.Generator, rows: int) -> pa.Array:
    """Make short unique text: twelve hexadecimal digits."""
    digits = np.frombuffer(random.bytes(rows * 6).hex().encode(), dtype=np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * 12
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))
