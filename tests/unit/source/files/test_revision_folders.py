"""A file that several revisions have is found in whichever directory stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.source.files.revision_folders import place_of, revision_folders

if TYPE_CHECKING:
    from pathlib import Path


def test_file_is_found_in_the_newest_revision_that_has_it(tmp_path: Path) -> None:
    for revision, name in (("000001-a", "x"), ("000002-b", "x"), ("000003-c", "y")):
        folder = tmp_path / "_revisions" / revision
        folder.mkdir(parents=True)
        (folder / name).touch()

    assert place_of(f"{tmp_path}/x") == f"{tmp_path}/_revisions/000002-b/x"
    assert place_of(f"{tmp_path}/z") == f"{tmp_path}/z"
    (tmp_path / "x").touch()
    assert place_of(f"{tmp_path}/x") == f"{tmp_path}/x"


def test_directory_without_revisions_has_none(tmp_path: Path) -> None:
    (tmp_path / "_revisions").touch()

    assert revision_folders(str(tmp_path)) == revision_folders(f"{tmp_path}/gone") == []
