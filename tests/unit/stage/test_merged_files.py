"""Merging is bounded in memory however wide rows are; what it writes is in test_upsert.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.model.partition import Partition
from tidegate.physical import BATCH_BYTES
from tidegate.stage.merged_files import ChangeFile, Merge, MergeInput, MergeSpec, StandingFile
from tidegate.stage.part_writers import WriteLimits
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 64 << 10
_ROWS = 1_536
_GROUP_BYTES = 8 << 20


def test_wide_rows_are_merged_in_batches_of_bounded_bytes(tmp_path: Path) -> None:
    standing, changes = str(tmp_path / "standing.parquet"), str(tmp_path / "changes.parquet")
    pq.write_table(_wide_rows(np.arange(_ROWS)), standing, use_dictionary=False)
    pq.write_table(_wide_rows(np.array([700])), changes, use_dictionary=False)
    made_of = MergeInput(
        Partition((("dt", "2026-03-01"),)),
        "0123456789abcdef",
        (StandingFile("standing.parquet", standing, 1 << 30),),
        (ChangeFile(changes, 0, 1),),
    )
    limits = WriteLimits(group_bytes=_GROUP_BYTES)
    spec = MergeSpec(("id",), frozenset(), 64 << 20, lambda files: next(iter(files))[1], limits)

    merged = Merge(LocalStorage(), spec, made_of, str(tmp_path / "unit"), "a").run()

    (part,) = merged.parts
    written = pq.read_metadata(tmp_path / "unit" / part.staged)
    assert written.num_rows == _ROWS
    sizes = [written.row_group(number).total_byte_size for number in range(written.num_row_groups)]
    assert max(sizes) <= _GROUP_BYTES + BATCH_BYTES


def _wide_rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    text = [f"{number:08}" * (_WIDTH // 8) for number in ids]
    return pa.table({"id": ids, "text": text})
