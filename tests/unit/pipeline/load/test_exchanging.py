"""Rows that sub-splits hand each other are found again, or their loss has a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from tidegate.errors import ExchangeFileLost, ExchangeIncomplete
from tidegate.model.exchange import Exchange, SpreadFile
from tidegate.model.file_slice import FileSlice
from tidegate.model.message import CommitMessage
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.model.wire import pretty
from tidegate.pipeline.load.exchanging import (
    PlanExchange,
    SpreadFileWriter,
    SpreadRows,
    read_bucket,
    read_spread,
    spreading,
    write_spread,
)
from tidegate.read.exchange import BUCKET_BITS, KeyPlacement
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64())])
STORAGE = LocalStorage()
BUCKETS = 3


def write(root: Path, name: str, ids: list[int], storage: LocalStorage = STORAGE) -> SpreadFile:
    batch = pa.record_batch([pa.array(ids)], schema=SCHEMA)
    rows = SpreadRows([batch], SCHEMA, KeyPlacement(("id",), 2))
    file = write_spread(storage, str(root), name, rows)
    assert file
    return file


def ids(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return sorted(number for batch in batches for number in batch.column(0).to_pylist())


def test_spread_file_says_where_it_is_how_long_and_how_many_rows(tmp_path: Path) -> None:
    file = write(tmp_path, "exchange/a/1.arrow", [1, 2, 3])

    assert file == SpreadFile(
        "exchange/a/1.arrow", (tmp_path / "exchange/a/1.arrow").stat().st_size, 3
    )
    found = [ids(read_bucket(STORAGE, str(tmp_path), file, number, 2)) for number in (0, 1)]
    assert sorted(found[0] + found[1]) == [1, 2, 3]


def test_spread_file_stands_after_a_power_cut(tmp_path: Path) -> None:
    root, stopper = tmp_path / "root", Stopper()
    root.mkdir()
    disk = stopper.disk = Disk(root, tmp_path / "kept")

    file = write(root, "exchange/a/1.arrow", [1, 2, 3], stopping_storage(stopper))
    disk.leave(tmp_path / "after", chance("lost", 0))

    left = str(tmp_path / "after")
    found = [ids(read_bucket(STORAGE, left, file, number, 2)) for number in (0, 1)]
    assert sorted(found[0] + found[1]) == [1, 2, 3]


def test_without_rows_there_is_no_file(tmp_path: Path) -> None:
    rows = SpreadRows([], SCHEMA, KeyPlacement(("id",), 2))

    assert write_spread(STORAGE, str(tmp_path), "a.arrow", rows) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["gone", "cut", "overwritten"])
def test_spread_file_that_was_lost_or_damaged_is_named(tmp_path: Path, damage: str) -> None:
    file = write(tmp_path, "a.arrow", [1, 2, 3])
    path = tmp_path / "a.arrow"
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.write_bytes(bytes(file.length))

    with pytest.raises(ExchangeFileLost) as lost:
        list(read_bucket(STORAGE, str(tmp_path), file, 0, 2))

    assert lost.value.values["path"] == str(path)


@dataclass
class Plan:
    """Two sub-splits that spread one commit, another that spreads another, one that gathers."""

    root: Path

    def __post_init__(self) -> None:
        begin = Exchange("one", 1, 2)
        self.spread = [SubSplit((Piece(FileSlice(name), 1, 1),), begin) for name in ("a", "b")]
        self.other = SubSplit((Piece(FileSlice("c"), 1, 1),), Exchange("other", 1, 2))
        self.gather = [SubSplit((), Exchange("one", 1, 2, 1, bucket)) for bucket in (0, 1)]
        parts = [*self.spread, self.other, *self.gather]
        found = spreading(Split((it,), 1) for it in parts)
        self.exchange = PlanExchange(STORAGE, str(self.root), found)

    def finish(self, part: SubSplit, numbers: list[int]) -> None:
        file = write(self.root, layout.attempt_exchange(part.id, "w1"), numbers)
        message = CommitMessage(part.id, "w1", spread=file)
        STORAGE.write_once(layout.message_file(str(self.root), part.id), pretty(message.to_json()))

    def gathered(self, bucket: int) -> list[int]:
        exchange = self.gather[bucket].exchange
        assert exchange
        return ids(self.exchange.read(exchange))


def test_bucket_of_a_plan_has_the_rows_of_its_own_commit_only(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.finish(plan.spread[0], [1, 2, 3, 4])
    plan.finish(plan.spread[1], [5, 6, 1])
    plan.finish(plan.other, [100, 101])

    assert sorted(plan.gathered(0) + plan.gathered(1)) == [1, 1, 2, 3, 4, 5, 6]
    assert (plan.gathered(0).count(1), plan.gathered(1).count(1)) in {(2, 0), (0, 2)}


def test_bucket_that_is_gathered_before_all_was_spread_is_refused_for_now(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.finish(plan.spread[0], [1, 2])

    with pytest.raises(ExchangeIncomplete) as early:
        plan.gathered(0)

    assert early.value.values["sub_split"] == plan.spread[1].id


def hand_on(root: Path, giver: str, *batches: list[int]) -> SpreadFile | None:
    """Hand on ids, each to the bucket that is its rest of three, and say so in a message."""
    path = layout.attempt_exchange(giver, "w1")
    file = SpreadFileWriter(STORAGE, str(root), path, SCHEMA, BUCKETS)
    for ids in batches:
        places = (np.array(ids, dtype=np.uint64) % np.uint64(BUCKETS)) << np.uint64(BUCKET_BITS)
        file.append(pa.record_batch([pa.array(ids, pa.int64())], schema=SCHEMA), places)
    found = file.finish()
    message = CommitMessage(giver, "w1", spread=found)
    STORAGE.write_once(layout.message_file(str(root), giver), pretty(message.to_json()))
    return found


def bucket_of(root: Path, bucket: int, *givers: str) -> list[int]:
    batches = read_spread(STORAGE, str(root), givers, bucket, BUCKETS)
    return [number for batch in batches for number in batch.column(0).to_pylist()]


@given(
    handed=st.lists(
        st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), max_size=3), max_size=4
    )
)
def test_each_bucket_has_its_rows_in_plan_order(
    handed: list[list[list[int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("plan")
    givers = [f"s{number}" for number in range(len(handed))]
    files = [hand_on(root, giver, *batches) for giver, batches in zip(givers, handed, strict=True)]

    flat = [number for batches in handed for ids in batches for number in ids]
    for bucket in range(BUCKETS):
        wanted = [number for number in flat if number % BUCKETS == bucket]
        assert bucket_of(root, bucket, *givers) == wanted
    for file, batches in zip(files, handed, strict=True):
        assert (file.rows if file else 0) == sum(map(len, batches))
        assert file is None or STORAGE.length(f"{root}/{file.path}") == file.length


def test_bucket_is_not_read_before_all_are_handed_on(tmp_path: Path) -> None:
    hand_on(tmp_path, "s1", [1])

    with pytest.raises(ExchangeIncomplete) as early:
        bucket_of(tmp_path, 1, "s1", "s2")

    assert early.value.values["sub_split"] == "s2"


def test_rows_that_were_lost_are_named(tmp_path: Path) -> None:
    file = hand_on(tmp_path, "s1", [1])
    assert file
    (tmp_path / file.path).unlink()

    with pytest.raises(ExchangeFileLost) as lost:
        bucket_of(tmp_path, 1, "s1")

    assert lost.value.values["path"] == str(tmp_path / file.path)


def test_attempt_that_fails_leaves_nothing_that_can_be_read(tmp_path: Path) -> None:
    path = layout.attempt_exchange("s1", "w1")
    file = SpreadFileWriter(STORAGE, str(tmp_path), path, SCHEMA, BUCKETS)
    file.append(pa.record_batch([pa.array([1])], schema=SCHEMA), np.zeros(1, dtype=np.uint64))

    file.close()

    with pytest.raises(pa.ArrowInvalid):
        pa.ipc.open_file(str(tmp_path / path))
