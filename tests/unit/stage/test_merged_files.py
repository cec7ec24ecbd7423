"""Merging is bounded in memory however wide rows are, and finds rows in any batch of a file.

What an upsert publishes is in test_upsert.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.errors import RowsLost
from tidegate.model.partition import Partition
from tidegate.physical import BATCH_BYTES
from tidegate.stage.merged_files import ChangeFile, Merge, MergeInput, MergeSpec, StandingFile
from tidegate.stage.part_writers import WriteLimits
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = Partition((("dt", "2026-03-01"),))
_WIDTH = 64 << 10
_ROWS = 1_536
_GROUP_BYTES = 8 << 20


def test_wide_rows_are_merged_in_batches_of_bounded_bytes(tmp_path: Path) -> None:
    standing, changes = str(tmp_path / "standing.parquet"), str(tmp_path / "changes.parquet")
    pq.write_table(_wide_rows(np.arange(_ROWS)), standing, use_dictionary=False)
    pq.write_table(_wide_rows(np.array([700])), changes, use_dictionary=False)
    made_of = MergeInput(
        DAY,
        "0123456789abcdef",
        (StandingFile("standing.parquet", standing, 1 << 30),),
        (ChangeFile(changes, 0, 1),),
    )

    merged = merge(tmp_path, made_of, WriteLimits(group_bytes=_GROUP_BYTES)).run()

    (part,) = merged.parts
    written = pq.read_metadata(tmp_path / "unit" / part.staged)
    assert written.num_rows == _ROWS
    sizes = [written.row_group(number).total_byte_size for number in range(written.num_row_groups)]
    assert max(sizes) <= _GROUP_BYTES + BATCH_BYTES


def test_changed_rows_are_exchanged_in_every_batch_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.stage.standing_rows.BATCH_ROWS", 2)
    standing, changes = str(tmp_path / "standing.parquet"), str(tmp_path / "changes.parquet")
    pq.write_table(pa.table({"id": range(7), "amount": [1] * 7}), standing)
    pq.write_table(pa.table({"id": [5, 0, 3, 6], "amount": [2] * 4}), changes)
    made_of = MergeInput(
        DAY,
        "0123456789abcdef",
        (StandingFile("standing.parquet", standing, 1 << 30),),
        (ChangeFile(changes, 0, 4),),
    )

    merged = merge(tmp_path, made_of).run()

    (part,) = merged.parts
    found = pq.read_table(tmp_path / "unit" / part.staged)
    assert found["id"].to_pylist() == list(range(7))
    assert found["amount"].to_pylist() == [2, 1, 1, 2, 1, 2, 2]


@pytest.mark.parametrize(("times", "written"), [(0, 0), (2, 6)], ids=["lost", "doubled"])
def test_joined_files_with_rows_lost_or_doubled_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, written: int
) -> None:
    def wrong(batches: Iterator[pa.RecordBatch], _ahead: int) -> Iterator[pa.RecordBatch]:
        return (batch for batch in batches for _ in range(times))

    standing = str(tmp_path / "standing.parquet")
    pq.write_table(pa.table({"id": range(3)}), standing)
    made_of = MergeInput(
        DAY, "0123456789abcdef", (StandingFile("standing.parquet", standing, 1 << 30),), ()
    )
    monkeypatch.setattr("tidegate.stage.merged_files.read_ahead", wrong)

    with pytest.raises(RowsLost) as refused:
        merge(tmp_path, made_of).joined()

    assert (refused.value.expected, refused.value.found) == (3, written)


def merge(folder: Path, made_of: MergeInput, limits: WriteLimits | None = None) -> Merge:
    spec = MergeSpec(
        ("id",),
        frozenset(),
        64 << 20,
        lambda files: next(iter(files))[1],
        limits or WriteLimits(),
    )
    return Merge(LocalStorage(), spec, made_of, str(folder / "unit"), "a")


def _wide_rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    text = [f"{number:08}" * (_WIDTH // 8) for number in ids]
    return pa.table({"id": ids, "text": text})
