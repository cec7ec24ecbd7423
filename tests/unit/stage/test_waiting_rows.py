"""Rows that wait come back as they were, in order, and leave nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate.errors import StorageFull
from tidegate.model.sort_key import SortKey
from tidegate.read.sorted_rows import RowOrder
from tidegate.stage.waiting_rows import WaitingRows

AS_THEY_CAME = RowOrder()


def rows_of(*names: str) -> pa.RecordBatch:
    return pa.record_batch(
        {"name": pa.array(names).dictionary_encode(), "tags": [[name] * 2 for name in names]}
    )


def names(waiting: WaitingRows, runs: list[Any]) -> list[str]:
    return [row["name"] for found in waiting.in_order(runs) for row in found.to_pylist()]


def test_rows_come_back_as_they_were_added() -> None:
    waiting = WaitingRows(AS_THEY_CAME)
    first, other, second = (waiting.add(rows_of(*it)) for it in ("ba", "xyz", "cb"))

    (found, more) = waiting.in_order([first, second])

    assert found.to_pylist() == rows_of("b", "a").to_pylist()
    assert names(waiting, [other]) == ["x", "y", "z"]
    assert more.schema == rows_of("c").schema
    waiting.close()


def test_rows_of_one_call_are_cut_into_blocks() -> None:
    waiting = WaitingRows(AS_THEY_CAME)
    wide = pa.record_batch({"name": ["x" * (1 << 19)] * 5})

    run = waiting.add(wide)

    assert [block.read().num_rows for block in run] == [1, 1, 1, 1, 1]
    waiting.close()


def test_sorted_rows_come_back_merged() -> None:
    waiting = WaitingRows(RowOrder((SortKey("name", descending=True),)))
    runs = [waiting.add(rows_of(*it)) for it in ("bca", "", "dab") if it]

    assert names(waiting, runs) == ["d", "c", "b", "b", "a", "a"]
    waiting.close()


def test_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    waiting = WaitingRows(AS_THEY_CAME)

    run = waiting.add(rows_of("a"))

    assert list(tmp_path.iterdir()) == []
    assert names(waiting, [run]) == ["a"]
    waiting.close()


def test_full_disk_is_an_error_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115 (closed with the rows)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    waiting = WaitingRows(AS_THEY_CAME)

    with pytest.raises(StorageFull, match="No space left"):
        waiting.add(rows_of("a"))
    waiting.close()


def test_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    with pytest.raises(Exception, match="gone"):
        WaitingRows(AS_THEY_CAME).add(rows_of("a"))
