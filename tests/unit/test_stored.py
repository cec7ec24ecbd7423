"""What was lost or damaged is told with its remedy; anything else passes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.errors import StateFileDamaged, StateFileLost, StorageDenied
from tidegate.storage import LocalStorage
from tidegate.stored import as_stored, read_content

if TYPE_CHECKING:
    from pathlib import Path


def test_content_is_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"{}")

    assert read_content(LocalStorage(), str(tmp_path / "plan.json"), lambda: "-") == b"{}"


def test_file_that_is_gone_is_lost_and_the_remedy_named(tmp_path: Path) -> None:
    with pytest.raises(StateFileLost, match="plan it anew") as lost:
        read_content(LocalStorage(), str(tmp_path / "plan.json"), lambda: "plan it anew")

    assert lost.value.values["path"] == str(tmp_path / "plan.json")


def test_file_that_cannot_be_read_is_not_called_lost(tmp_path: Path) -> None:
    with pytest.raises(StorageDenied):
        read_content(LocalStorage(), str(tmp_path), lambda: "plan it anew")


@pytest.mark.parametrize(
    "decode",
    [
        lambda: json.loads("{"),
        lambda: {}["window"],
        lambda: json.loads("[]")[0],
        lambda: int(None),
        lambda: None.window,
        lambda: b"\xff".decode(),
    ],
    ids=["no json", "no key", "too short", "another type", "no attribute", "no text"],
)
def test_content_that_says_nothing_is_damaged(decode: Any) -> None:
    with pytest.raises(StateFileDamaged, match="move it away"):
        as_stored("plan.json", decode, lambda: "move it away")


def test_error_that_is_not_of_the_content_passes() -> None:
    def decode() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        as_stored("plan.json", decode, lambda: "-")


def test_remedy_is_not_asked_for_where_nothing_is_wrong() -> None:
    def refuse() -> str:
        raise AssertionError

    assert as_stored("plan.json", lambda: 7, refuse) == 7
