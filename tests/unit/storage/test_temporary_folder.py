"""Temporary folders go with their process, at the latest when the next one is made."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from tidegate.storage.temporary_folder import TemporaryFolder, remove_left_folders

if TYPE_CHECKING:
    from pathlib import Path

DIES = """
import os
from tidegate.storage.temporary_folder import TemporaryFolder
folder = TemporaryFolder("merge")
(folder.path / "rows").write_text("ada")
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let temporary files lie in a folder of this test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_folder_is_gone_when_it_is_closed(place: Path) -> None:
    with TemporaryFolder("merge") as folder:
        assert folder.path.parent == place
        (folder.path / "rows").write_text("ada")

    assert list(place.iterdir()) == []


def test_folder_that_a_killed_process_left_is_removed_and_one_in_use_is_not(place: Path) -> None:
    with TemporaryFolder("merge") as used:
        (used.path / "rows").write_text("bob")
        subprocess.run([sys.executable, "-c", DIES], check=False)
        assert len(list(place.iterdir())) == 2

        with TemporaryFolder("merge") as next_one:
            assert {*place.iterdir()} == {used.path, next_one.path}
        assert (used.path / "rows").read_text() == "bob"


def test_folders_of_others_stay(place: Path) -> None:
    (place / "tidegate-mine").mkdir()
    (place / "tidegate-mine" / "rows").write_text("eve")

    remove_left_folders()

    assert (place / "tidegate-mine" / "rows").read_text() == "eve"
