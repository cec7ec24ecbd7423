"""A file that several revisions have is found in whichever directory stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.source.files.revision_folders import ListedFiles
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path


def test_file_is_found_in_the_newest_revision_that_has_it(tmp_path: Path) -> None:
    for revision, name in (("000001-a", "x"), ("000002-b", "x"), ("000003-c", "y")):
        folder = tmp_path / "_revisions" / revision
        folder.mkdir(parents=True)
        (folder / name).touch()

    files = ListedFiles(LocalStorage())
    assert place(files, f"{tmp_path}/x") == f"{tmp_path}/_revisions/000002-b/x"
    with pytest.raises(FileNotFoundError):
        files.open(f"{tmp_path}/z")
    # Revisions go, and others come, while a process reads.
    (tmp_path / "_revisions" / "000002-b" / "x").unlink()
    assert place(files, f"{tmp_path}/x") == f"{tmp_path}/_revisions/000001-a/x"
    (tmp_path / "x").touch()
    assert place(ListedFiles(LocalStorage()), f"{tmp_path}/x") == f"{tmp_path}/x"


def place(files: ListedFiles, path: str) -> str:
    file, found = files.open(path)
    file.close()
    return found.path
