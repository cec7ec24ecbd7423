"""Merging gives each key its last change, in bounded memory, and what it has made is durable."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from tidegate.errors import RowsLost
from tidegate.model.erasure import Erasure
from tidegate.model.partition import Partition
from tidegate.physical import BATCH_BYTES
from tidegate.read.erased_rows import fingerprints
from tidegate.stage.merged_files import ChangeFile, Merge, MergeInput, MergeSpec, StandingFile
from tidegate.stage.part_writers import WriteLimits
from tidegate.storage import LocalStorage
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidegate.stage.merged_files import MergedFiles
    from tidegate.storage import Storage

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


@pytest.mark.parametrize("memory", [64 << 20, 100], ids=["in one set", "in many sets"])
@pytest.mark.parametrize(
    "new", [range(0), range(50, 60)], ids=["without new keys", "with new keys"]
)
def test_each_key_has_its_last_change_and_untouched_files_stay(
    tmp_path: Path, memory: int, new: range
) -> None:
    """Small files are joined with the rows of new keys, and with nothing else."""
    files = {
        "large": (range(8), 1 << 30),
        "large, untouched": (range(30, 33), 1 << 30),
        "small": (range(10, 16), 1),
        "small, untouched": (range(16, 18), 1),
    }
    changes = [(6, 2), (1, 2), (11, 2), (3, 2), (2, None), (1, 3), (15, None), (99, None)]
    changes += [(key, 2) for key in new]

    merged = merge(tmp_path, written(tmp_path, files, changes), memory=memory).run()

    tables = [pq.read_table(tmp_path / "unit" / part.staged) for part in merged.parts]
    tables += [pq.read_table(tmp_path / name) for name in merged.kept]
    rows = [(row["id"], row["amount"]) for table in tables for row in table.to_pylist()]
    standing = {key: 1 for keys, _ in files.values() for key in keys}
    expected = {**standing, **dict(changes)}
    assert sorted(rows) == sorted((key, it) for key, it in expected.items() if it is not None)
    assert set(merged.kept) == {name for name in files if name.endswith("untouched")} - (
        {"small, untouched"} if new else set()
    )
    stood = [[key for key in table["id"].to_pylist() if key in standing] for table in tables]
    assert all(keys == sorted(keys) for keys in stood)
    assert {tuple(table.column_names) for table in tables} == {("id", "amount")}


@pytest.mark.parametrize(
    "make",
    [Merge.run, Merge.joined, lambda made: made.without([erased(3)])],
    ids=["merged", "joined", "without erased rows"],
)
def test_files_that_were_made_stay_after_a_power_cut(
    tmp_path: Path, make: Callable[[Merge], MergedFiles]
) -> None:
    made_of = written(tmp_path, {"one": (range(4), 1)}, [(3, 2)])
    (tmp_path / "unit").mkdir()
    machine = Disk(tmp_path / "unit", tmp_path / "kept")

    made = make(merge(tmp_path, made_of, storage=stopping_storage(Stopper(disk=machine))))
    machine.leave(tmp_path / "after", chance("lost", 0))

    (part,) = made.parts
    left = (tmp_path / "after" / part.staged).read_bytes()
    assert left == (tmp_path / "unit" / part.staged).read_bytes()


def test_file_all_of_whose_rows_are_erased_is_one_without_rows(tmp_path: Path) -> None:
    made_of = written(tmp_path, {"one": (range(2), 1)}, [])

    made = merge(tmp_path, made_of).without([erased(0, 1)])

    (part,) = made.parts
    found = pq.read_table(tmp_path / "unit" / part.staged)
    assert (part.rows, found.num_rows, found.column_names) == (0, 0, ["id", "amount"])


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


def written(
    folder: Path, files: dict[str, tuple[range, int]], changes: list[tuple[int, int | None]]
) -> MergeInput:
    """Write standing files, whose lengths are given, and changes; an amount of None deletes."""
    for name, (keys, _) in files.items():
        pq.write_table(pa.table({"id": keys, "amount": [1] * len(keys)}), folder / name)
    told = {
        "id": [key for key, _ in changes],
        "amount": pa.array([amount for _, amount in changes], pa.int64()),
        "_change_type": ["DELETE" if amount is None else "INSERT" for _, amount in changes],
    }
    pq.write_table(pa.table(told), folder / "changes")
    return MergeInput(
        DAY,
        "0123456789abcdef",
        tuple(StandingFile(name, str(folder / name), it) for name, (_, it) in files.items()),
        (ChangeFile(str(folder / "changes"), 0, len(changes)),) if changes else (),
    )


def erased(*keys: int) -> Erasure:
    rows = fingerprints([pa.array(keys, pa.int64())], "s")
    return Erasure(
        1, ("id",), ("whole numbers",), "s", rows, "ada", datetime(2026, 6, 1, tzinfo=UTC)
    )


def merge(
    folder: Path,
    made_of: MergeInput,
    limits: WriteLimits | None = None,
    memory: int = 64 << 20,
    storage: Storage | None = None,
) -> Merge:
    spec = MergeSpec(("id",), frozenset({"_change_type"}), memory, unified, limits or WriteLimits())
    return Merge(storage or LocalStorage(), spec, made_of, str(folder / "unit"), "a")


def _wide_rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    text = [f"{number:08}" * (_WIDTH // 8) for number in ids]
    return pa.table({"id": ids, "text": text})
