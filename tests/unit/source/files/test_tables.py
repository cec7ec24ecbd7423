"""A folder in a table, or with tables in it, is no folder of plain files (PC-R01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.config import read_source
from tidegate.errors import FolderOfTable
from tidegate.source.files.walk import list_directory
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.files.listing import Listing


def put(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")


def hudi(root: Path) -> None:
    put(root, ".hoodie/hoodie.properties", "eu/.hoodie_partition_metadata", "eu/a.parquet")


def iceberg(root: Path) -> None:
    put(root, "metadata/00000-a.metadata.json", "data/day=1/a.parquet")


def listed(root: Path, **keys: str) -> Listing:
    config = read_source({"kind": "files", "path": str(root), **keys})
    return list_directory(config, LocalStorage())


@pytest.mark.parametrize(
    ("make", "inside", "kind"),
    [
        (hudi, "", "hudi"),
        (hudi, "eu", "hudi"),
        (iceberg, "", "iceberg"),
        (iceberg, "data", "iceberg"),
        (iceberg, "data/day=1", "iceberg"),
    ],
)
def test_folder_in_a_table_is_refused_with_the_folder_of_the_table(
    tmp_path: Path, make: object, inside: str, kind: str
) -> None:
    table = tmp_path / "trips"
    assert callable(make)
    make(table)

    with pytest.raises(FolderOfTable) as refused:
        listed(table / inside)

    assert f"a table of kind {kind} in {table}" in str(refused.value)
    assert f"`tidegate init --from {table}`" in str(refused.value)


def test_folder_that_is_a_link_into_a_table_is_refused(tmp_path: Path) -> None:
    hudi(tmp_path / "trips")
    (tmp_path / "link").symlink_to(tmp_path / "trips" / "eu")

    with pytest.raises(FolderOfTable, match=f"init --from {tmp_path}/trips`"):
        listed(tmp_path / "link")


def test_folder_of_several_tables_is_refused_with_each_of_them(tmp_path: Path) -> None:
    hudi(tmp_path / "a" / "trips")
    iceberg(tmp_path / "orders")

    with pytest.raises(FolderOfTable) as refused:
        listed(tmp_path)

    assert refused.value.values["tables"] == (
        f"a table of kind hudi in {tmp_path}/a/trips, a table of kind iceberg in {tmp_path}/orders"
    )
    assert "the same for the other tables" in str(refused.value)


def test_plain_files_beside_a_table_are_read_if_only_their_paths_match(tmp_path: Path) -> None:
    hudi(tmp_path / "trips")
    put(tmp_path, "plain/b.parquet")

    found = listed(tmp_path, path_regex=".*/plain/.*")

    assert [file.path for file in found.files] == ["plain/b.parquet"]


def test_partition_of_a_table_that_is_not_there_is_refused_without_a_command(
    tmp_path: Path,
) -> None:
    put(tmp_path, "eu/.hoodie_partition_metadata", "eu/a.parquet")

    with pytest.raises(FolderOfTable, match="the folder of the whole table") as refused:
        listed(tmp_path)

    assert "init" not in str(refused.value)


def test_folder_named_as_one_of_metadata_is_a_plain_one(tmp_path: Path) -> None:
    put(tmp_path, "metadata/a.parquet", "data/b.parquet")

    assert len(listed(tmp_path).files) == 2
