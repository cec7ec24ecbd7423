"""Files of the work directory that are read as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.errors import FormatUnknown, StateFileDamaged, StateFileLost
from tidegate.model.message import CommitMessage, EventTimes
from tidegate.model.partition import Partition
from tidegate.stage import layout
from tidegate.stage.stored import read_stored
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = CommitMessage("s", "a", (), (), 0, 0, EventTimes())
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
