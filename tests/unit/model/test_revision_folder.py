"""The directory of a revision is told apart from that of a partition, by its path alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.model.revision_folder import (
    partition_of,
    revision_folder,
    revision_folders,
    revision_of,
)
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("root", ["/t/dt=1", "/t", "s3://b/t/dt=1/hr=2", "dt=1"])
@pytest.mark.parametrize("revision", [1, 999_999, 1_000_000])
def test_directory_tells_its_revision_and_partition(root: str, revision: int) -> None:
    folder = revision_folder(root, revision, "0123456789abcdef")

    assert (partition_of(folder), revision_of(folder)) == (root, revision)


def test_table_without_partitions_is_its_own_partition() -> None:
    assert partition_of("_revisions/000001-ab") == ""
    assert revision_of("_revisions/000001-ab") == 1


@pytest.mark.parametrize(
    "folder",
    ["", "dt=1", "_revisions", "dt=1/_revisions", "a_revisions/000001-ab", "_revisions/1-ab",
     "_revisions/000001-xyz", "_revisions/000001-ab/more", "_revisions/000001-"],
)  # fmt: skip
def test_other_directories_are_none_of_a_revision(folder: str) -> None:
    assert revision_of(folder) is None
    assert partition_of(folder) == folder


def test_directories_in_order_of_their_names_are_in_order_of_revisions() -> None:
    folders = [revision_folder("/t", number, "f" if number % 2 else "0") for number in (2, 9, 10)]

    assert sorted(folders) == folders


def test_directory_without_revisions_has_none(tmp_path: Path) -> None:
    (tmp_path / "_revisions").touch()

    assert revision_folders(LocalStorage(), str(tmp_path)) == []
    assert revision_folders(LocalStorage(), f"{tmp_path}/gone") == []
