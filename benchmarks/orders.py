"""Make orders in ten files: each with rows of all ten days, or each with those of one day."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.job import Job

if TYPE_CHECKING:
    from pathlib import Path

FILES = 10
DAYS = 10
REGIONS = ("eu", "us", "apac", "latam", "mea")
ORDER_SUMS = (
    "sum(order_id)",
    "sum(customer_id)",
    "sum(round(amount * 100)::BIGINT)",
    "bit_xor(hash(note))",
    "min(region)",
    "max(region)",
    "min(epoch_us(ordered_at))",
    "max(epoch_us(ordered_at))",
    "sum(epoch_us(ordered_at) % 1000003)",
)
KEPT_REGIONS = "region in ('eu', 'us')"

_FIRST_DAY = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
_DAY = 86_400 * 1_000_000


def make_orders(folder: Path, million_rows: int, *, by_day: bool = False) -> Path:
    """Write the files that are not there yet; gives the folder back.

    Args:
        folder: for the files.
        million_rows: in all files.
        by_day: whether each file has the rows of one day; otherwise it has some of every day.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = million_rows * 1_000_000 // FILES
    for index in range(FILES):
        path = folder / f"orders-{index:03d}.parquet"
        if not path.exists():
            unfinished = folder / f".{path.name}"
            pq.write_table(
                _orders(index, rows, by_day=by_day),
                unfinished,
                compression="zstd",
                row_group_size=1 << 18,
            )
            unfinished.rename(path)
    return folder


def repeat_files(folder: Path, source: Path, times: int) -> None:
    """Give the same files under several names: more input without more disk."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(times):
        for path in source.glob("*.parquet"):
            link = folder / f"{index:03d}-{path.name}"
            if not link.exists():
                os.link(path, link)


def orders_job(source: Path) -> Job:
    """Keep two of five regions, write by day."""
    return Job(
        kind="files",
        source=str(source),
        filter=KEPT_REGIONS,
        event_time="ordered_at",
        unit="day",
        sums=ORDER_SUMS,
    )


def days_job(source: Path) -> Job:
    """Keep everything, write by day what is by day already."""
    return replace(orders_job(source), filter="")


def _orders(index: int, rows: int, *, by_day: bool) -> pa.Table:
    random = np.random.default_rng(index)
    first, days = (_FIRST_DAY + index * _DAY, 1) if by_day else (_FIRST_DAY, DAYS)
    return pa.table(
        {
            "order_id": np.arange(index * rows, (index + 1) * rows),
            "customer_id": random.integers(0, 2_000_000, rows),
            "amount": np.round(random.gamma(2.0, 40.0, rows), 2),
            "note": _notes(random, rows),
            "region": pa.array(REGIONS).take(pa.array(random.integers(0, len(REGIONS), rows))),
            "ordered_at": pa.array(
                first + random.integers(0, days * _DAY, rows), pa.timestamp("us", "UTC")
            ),
        }
    )


def _notes(random: np.random.Generator, rows: int) -> pa.Array:
    """Make short unique text: twelve hexadecimal digits."""
    digits = np.frombuffer(random.bytes(rows * 6).hex().encode(), dtype=np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * 12
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))
