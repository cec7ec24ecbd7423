"""Make the rows of the comparison of upserts: a day of orders, and changes of one row in a hundred.

The keys of the changes are spread over all files of the day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

CHANGED = 100
"""One row in so many is changed or added."""

_ADDED = 5
"""One change in so many is the row of a new key."""
_FILES = 10
_SEED = 13
_DAY = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
_DAY_SECONDS = 86_400
_MICROS = 1_000_000
_REGIONS = ("eu", "us", "apac", "latam", "mea")
_LARGEST_DELAY = 60


@dataclass(frozen=True)
class ChangedRows:
    """Folders of Parquet files."""

    before: Path
    """What stands before."""
    changes: Path
    """Whole rows that replace those of their keys, or are added."""


def make_rows(folder: Path, rows: int) -> ChangedRows:
    """Write the files that are not there yet.

    Args:
        folder: for the folders.
        rows: that stand before; their keys are the numbers below.
    """
    made = ChangedRows(folder / "before", folder / "changes")
    bounds = [rows * index // _FILES for index in range(_FILES + 1)]
    for index, (first, end) in enumerate(pairwise(bounds)):
        path = made.before / f"orders-{index:03d}.parquet"
        _write(path, np.arange(first, end), index)
    random = np.random.default_rng(_SEED)
    changed = rows // CHANGED
    added = changed // _ADDED
    updated = random.choice(rows, changed - added, replace=False)
    keys = random.permutation(np.concatenate([updated, np.arange(rows, rows + added)]))
    _write(made.changes / "changes.parquet", keys, _FILES)
    return made


def _write(path: Path, keys: Numbers, seed: int) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    rows = _rows(np.random.default_rng((_SEED, seed)), keys)
    pq.write_table(rows, unfinished, compression="zstd", row_group_size=1 << 18)
    unfinished.rename(path)


def _rows(random: np.random.Generator, keys: Numbers) -> pa.Table:
    count = len(keys)
    ordered = _DAY * _MICROS + random.integers(0, _DAY_SECONDS * _MICROS, count)
    due = _DAY // _DAY_SECONDS + random.integers(0, _LARGEST_DELAY, count)
    return pa.table(
        {
            "order_id": keys,
            "customer_id": random.integers(0, 2_000_000, count),
            "amount": _amounts((random.gamma(2.0, 4000.0, count)).astype(np.int64)),
            "quantity": random.integers(1, 100, count, dtype=np.int32),
            "discount": np.round(random.random(count) / 3, 4),
            "note": _notes(random, count),
            "region": pa.array(_REGIONS).take(pa.array(random.integers(0, len(_REGIONS), count))),
            "is_paid": random.random(count) < 0.7,
            "due_on": pa.array(due.astype(np.int32)).cast(pa.date32()),
            "ordered_at": pa.array(ordered, pa.timestamp("us", "UTC")),
        }
    )


def _amounts(cents: Numbers) -> pa.Array:
    """Make decimals, of which each has 128 bits, lowest first."""
    words = np.zeros((len(cents), 2), np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words)])


def _notes(random: np.random.Generator, count: int) -> pa.Array:
    """Make short unique text: twelve hexadecimal digits."""
    digits = np.frombuffer(random.bytes(count * 6).hex().encode(), dtype=np.uint8)
    offsets = np.arange(count + 1, dtype=np.int32) * 12
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits))
