"""What a planned file still needs is found from what stands at both places."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import (
    FileContentWrong,
    FileLengthWrong,
    StagedFileMissing,
)
from tidegate.model.publication import StagedFile
from tidegate.storage import LocalStorage, has_to_move

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = b"four"


SHA = hashlib.sha256(CONTENT).hexdigest()


def is_to_move(folder: Path) -> bool:
    staged, target = str(folder / "staged"), str(folder / "target")
    storage = LocalStorage()
    found = storage.lengths([staged, target])
    file = StagedFile("part", len(CONTENT), SHA, 1, 7, "plan", "staged")
    return has_to_move(storage, found, file, staged, target)


def test_has_to_move_staged_only_has_to_move(tmp_path: Path) -> None:
    """PC-F20."""
    (tmp_path / "staged").write_bytes(CONTENT)

    assert is_to_move(tmp_path)


def test_has_to_move_target_only_is_done(tmp_path: Path) -> None:
    """PC-F22."""
    (tmp_path / "target").write_bytes(CONTENT)

    assert not is_to_move(tmp_path)


def test_has_to_move_both_equal_is_done(tmp_path: Path) -> None:
    """PC-F25, as a crash inside the move leaves it."""
    (tmp_path / "staged").write_bytes(CONTENT)
    os.link(tmp_path / "staged", tmp_path / "target")

    assert not is_to_move(tmp_path)


def test_has_to_move_neither_names_both_places_and_the_window(tmp_path: Path) -> None:
    """PC-F24."""
    with pytest.raises(StagedFileMissing) as refused:
        is_to_move(tmp_path)

    assert refused.value.window == 7
    assert str(tmp_path / "target") in str(refused.value)


@pytest.mark.parametrize("name", ["staged", "target"])
@pytest.mark.parametrize("found", [b"", b"abc", b"fiver"], ids=["empty", "shorter", "longer"])
def test_has_to_move_a_file_of_another_length_is_refused(
    tmp_path: Path, name: str, found: bytes
) -> None:
    """PC-F21 and F23."""
    (tmp_path / name).write_bytes(found)

    with pytest.raises(FileLengthWrong) as refused:
        is_to_move(tmp_path)

    assert (refused.value.expected, refused.value.found) == (len(CONTENT), len(found))


def test_has_to_move_both_with_a_shorter_target_is_refused(tmp_path: Path) -> None:
    """PC-F26."""
    (tmp_path / "staged").write_bytes(CONTENT)
    (tmp_path / "target").write_bytes(b"fou")

    with pytest.raises(FileLengthWrong, match="target"):
        is_to_move(tmp_path)


def test_has_to_move_both_with_other_bytes_at_the_target_is_refused(tmp_path: Path) -> None:
    """PC-F25, second half."""
    (tmp_path / "staged").write_bytes(CONTENT)
    (tmp_path / "target").write_bytes(b"FOUR")

    with pytest.raises(FileContentWrong):
        is_to_move(tmp_path)
