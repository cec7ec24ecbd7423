"""Files of the work directory that are read as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.errors import FormatUnknown, StateFileDamaged, StateFileLost
from tidegate.model.message import (
    CommitMessage,
    EventTimes,
    HeldPartition,
    PartFile,
    ReadNotes,
    Staged,
)
from tidegate.model.partition import Partition
from tidegate.model.settling import SettleCounts
from tidegate.stage import layout
from tidegate.stage.stored import read_stored
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = CommitMessage("s", "a")
DAY = Partition((("dt", "2026-02-01"),))
REBUILD = "let `tidegate fsck PIPELINE --rebuild` find what stands"
REPLAY = "read its window again with `tidegate replay PIPELINE 12`"
PLAN = layout.plan_root("/w", 12, "ff")


def test_value_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_text(MESSAGE.to_text())

    assert read_stored(LocalStorage(), str(path), CommitMessage) == MESSAGE


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"null", b'{"format": 1}', b'{"format": 1, "unknown": 2}'],
)
def test_content_that_is_no_such_value_is_called_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "value.json"
    path.write_bytes(content)

    with pytest.raises(StateFileDamaged, match=r"value\.json: expected .*move it away"):
        read_stored(LocalStorage(), str(path), CommitMessage)


def test_value_of_a_later_version_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_text('{"format": 99}')

    with pytest.raises(FormatUnknown):
        read_stored(LocalStorage(), str(path), CommitMessage)


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (layout.plan_file(PLAN), REPLAY),
        (layout.message_file(PLAN, "s"), REPLAY),
        (layout.sealed_file(PLAN, 3), REBUILD),
        (layout.publication_file("/w", DAY, 1, "ff-3"), REBUILD),
        (layout.publication_file("/windows/000001/w", DAY, 1, "ff-3"), REBUILD),
        (layout.gate_file("/w", DAY, 1, "ff-3"), REBUILD),
        (layout.decision_file("/w", DAY, 1, "ff-3"), REBUILD),
    ],
)
def test_remedy_is_chosen_by_where_the_file_lies(path: str, remedy: str) -> None:
    with pytest.raises(StateFileLost) as lost:
        read_stored(LocalStorage(), path, CommitMessage)

    assert lost.value.remedy == f"{remedy}, then publish with `tidegate publish PIPELINE`"


def test_message_of_the_first_format_is_read() -> None:
    part = {
        "partition": {"values": [["dt", "2026-03-01"]]},
        "name": "part-1.parquet",
        "staged": "staged/s/a/part-1.parquet",
        "length": 9,
        "sha256": "ab",
        "rows": 3,
        "event_times": {"smallest": None, "largest": None, "missing": 3, "future": 0},
    }
    written = {
        "format": 1,
        "sub_split": "s",
        "attempt": "a",
        "parts": [part],
        "quarantined": [],
        "rows_read": 4,
        "rows_kept": 3,
        "event_times": {"smallest": None, "largest": None, "missing": 3, "future": 0},
        "rule_hits": {"low": 1},
        "held": [{"values": [["dt", "2026-03-01"]]}],
        "held_rules": [["low"]],
        "settled": {"carried_over": 2, "unpaired": 0},
        "spread": None,
        "balance": {},
    }

    found = CommitMessage.from_json(written)

    day = Partition((("dt", "2026-03-01"),))
    times = EventTimes(missing=3)
    file = PartFile(day, "part-1.parquet", "staged/s/a/part-1.parquet", 9, "ab", 3, times)
    held = (HeldPartition(day, ("low",)),)
    staged = Staged((file,), (), 4, 3, times, {"low": 1}, held)
    assert found == CommitMessage("s", "a", staged, ReadNotes(SettleCounts(2)))
    assert CommitMessage.from_text(found.to_text()) == found
