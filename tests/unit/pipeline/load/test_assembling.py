"""Rows that are handed on are found by whoever assembles them, or their loss has a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ExchangeFileLost, ExchangeIncomplete
from tidegate.model.assembly import Assembly
from tidegate.model.exchange import Exchange
from tidegate.model.file_slice import CheckedState, FileSlice
from tidegate.model.message import CommitMessage
from tidegate.model.plan import Piece, Split, SubSplit
from tidegate.model.wire import pretty
from tidegate.pipeline.load.assembling import (
    HandedOnFile,
    assembly_in,
    handing_on,
    read_handed_on,
)
from tidegate.read.exchange import BUCKET_BITS
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.exchange import SpreadFile

SCHEMA = pa.schema([("id", pa.int64())])
STORAGE = LocalStorage()
BUCKETS = 3


def hand_on(root: Path, giver: str, *batches: list[int]) -> SpreadFile | None:
    """Hand on ids, each to the bucket that is its rest of three, and say so in a message."""
    path = layout.attempt_exchange(giver, "w1")
    file = HandedOnFile(STORAGE, str(root), path, SCHEMA, BUCKETS)
    for ids in batches:
        places = (np.array(ids, dtype=np.uint64) % np.uint64(BUCKETS)) << np.uint64(BUCKET_BITS)
        file.append(pa.record_batch([pa.array(ids, pa.int64())], schema=SCHEMA), places)
    found = file.finish()
    message = CommitMessage(giver, "w1", spread=found)
    STORAGE.write_once(layout.message_file(str(root), giver), pretty(message.to_json()))
    return found


def assembled(root: Path, bucket: int, *givers: str) -> list[int]:
    batches = read_handed_on(STORAGE, str(root), givers, Assembly(bucket, BUCKETS, 1, 32))
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
        assert assembled(root, bucket, *givers) == wanted
    for file, batches in zip(files, handed, strict=True):
        assert (file.rows if file else 0) == sum(map(len, batches))
        assert file is None or STORAGE.length(f"{root}/{file.path}") == file.length


def test_rows_are_not_assembled_before_all_are_handed_on(tmp_path: Path) -> None:
    hand_on(tmp_path, "s1", [1])

    with pytest.raises(ExchangeIncomplete) as early:
        assembled(tmp_path, 1, "s1", "s2")

    assert early.value.values["sub_split"] == "s2"


def test_rows_that_were_lost_are_named(tmp_path: Path) -> None:
    file = hand_on(tmp_path, "s1", [1])
    assert file
    (tmp_path / file.path).unlink()

    with pytest.raises(ExchangeFileLost) as lost:
        assembled(tmp_path, 1, "s1")

    assert lost.value.values["path"] == str(tmp_path / file.path)


def test_attempt_that_fails_leaves_nothing_that_can_be_read(tmp_path: Path) -> None:
    path = layout.attempt_exchange("s1", "w1")
    file = HandedOnFile(STORAGE, str(tmp_path), path, SCHEMA, BUCKETS)
    file.append(pa.record_batch([pa.array([1])], schema=SCHEMA), np.zeros(1, dtype=np.uint64))

    file.close()

    with pytest.raises(pa.ArrowInvalid):
        pa.ipc.open_file(str(tmp_path / path))


def test_those_hand_on_that_stage_what_they_read() -> None:
    begin = Exchange("g", 1, 1)
    piece, checked = (
        Piece(FileSlice("f", check=check), 1, 1) for check in (None, CheckedState(7, True))
    )
    plain, check = SubSplit((piece,)), SubSplit((checked,))
    spreads, gathers = SubSplit((piece,), begin), SubSplit((), Exchange("g", 1, 1, 1, 0))
    assembles = [SubSplit((), assembly=Assembly(bucket, 2, 2, 32)) for bucket in range(2)]
    splits = [Split((part,), 1) for part in (spreads, plain, gathers, check, *assembles)]

    assert handing_on(splits) == (plain.id, gathers.id)
    assert assembly_in(splits) == assembles[-1].assembly
    assert (assembly_in(splits[:4]), assembly_in([])) == (None, None)
