"""A listing holds every file that counts, sorted, and refuses what is no partition (PC-R01–R04)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidegate.config import SourceConfig, read_source
from tidegate.errors import (
    FolderNotFound,
    PartitionPathInvalid,
    PartitionValueInvalid,
    SourceReadTwice,
    SourceUnreachable,
)
from tidegate.source.files.walk import list_directory

if TYPE_CHECKING:
    from pathlib import Path


def _config(root: Path, **keys: Any) -> SourceConfig:
    return read_source({"kind": "files", "path": str(root), **keys})


def _touch(root: Path, *paths: str, content: bytes = b"x") -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def test_hidden_and_empty_files_are_left_out_at_every_level(tmp_path: Path) -> None:
    _touch(
        tmp_path,
        "b.parquet",
        "a/c.parquet",
        "_SUCCESS",
        "_tmp/x.parquet",
        "a/.hidden/y.parquet",
        "a/.z",
    )
    _touch(tmp_path, "empty.parquet", content=b"")

    listing = list_directory(_config(tmp_path))

    assert [file.path for file in listing.files] == ["a/c.parquet", "b.parquet"]


def test_listed_file_has_size_and_modification_time(tmp_path: Path) -> None:
    _touch(tmp_path, "a.parquet", content=b"four")

    (file,) = list_directory(_config(tmp_path)).files

    status = (tmp_path / "a.parquet").stat()
    assert (file.size, file.modified) == (4, status.st_mtime_ns)


def test_pattern_matches_the_whole_absolute_path(tmp_path: Path) -> None:
    _touch(tmp_path, "a.parquet", "a.csv", "b/a.parquet")

    listing = list_directory(_config(tmp_path, path_regex=r".*/b/[^/]+\.parquet"))

    assert [file.path for file in listing.files] == ["b/a.parquet"]


@pytest.mark.parametrize(
    "path",
    [
        "x.parquet",
        "dt=2026-01-01/x.parquet",
        "dt=2026-01-01/hr=3/deep/x.parquet",
        "hr=3/dt=2026-01-01/x.parquet",
    ],
    ids=["root", "too-few", "too-deep", "wrong-order"],
)
def test_path_that_is_no_partition_fails_or_is_skipped_and_noted(path: str, tmp_path: Path) -> None:
    _touch(tmp_path, path, "dt=2026-01-02/hr=4/good.parquet")
    keys = {"dt": "date", "hr": "int"}

    with pytest.raises(PartitionPathInvalid):
        list_directory(_config(tmp_path, partition_by=keys))
    listing = list_directory(_config(tmp_path, partition_by=keys, on_bad_path="skip"))

    assert [file.path for file in listing.files] == ["dt=2026-01-02/hr=4/good.parquet"]
    assert len(listing.skipped) == 1


def test_empty_directory_at_a_partition_level_must_parse_too(tmp_path: Path) -> None:
    (tmp_path / "dt=tomorrow").mkdir()

    with pytest.raises(PartitionValueInvalid) as refused:
        list_directory(_config(tmp_path, partition_by={"dt": "date"}))

    assert (refused.value.path, refused.value.value, refused.value.type) == (
        "dt=tomorrow",
        "tomorrow",
        "date",
    )


def test_root_that_is_no_directory_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FolderNotFound):
        list_directory(_config(tmp_path / "nowhere"))


def test_directory_that_cannot_be_listed_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As root no directory refuses to be listed, so the store itself has to.
    class Refusing:
        def get_file_info(self, of: Any) -> Any:
            if isinstance(of, str):
                return pa.fs.LocalFileSystem().get_file_info(of)
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tidegate.source.files.walk._FILES", Refusing())

    with pytest.raises(SourceUnreachable, match="Permission denied"):
        list_directory(_config(tmp_path))


def _linked(root: Path, link: str, place: Path) -> None:
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(place)


BACK = {
    "root": ("loop", "."),
    "above": ("a/loop", ".."),
    "sibling": ("loop", "a"),
    "file": ("same.parquet", "a/x.parquet"),
    "twice": ("second", "../outside"),
    "below": ("second", "../outside/deep"),
}


@pytest.mark.parametrize(("link", "place"), BACK.values(), ids=BACK.keys())
def test_link_to_what_is_read_already_is_refused_or_skipped(
    tmp_path: Path, link: str, place: str
) -> None:
    root = tmp_path / "root"
    _touch(root, "a/x.parquet")
    _touch(tmp_path / "outside", "deep/y.parquet")
    _linked(root, "linked", tmp_path / "outside")
    _linked(root, link, root / place)

    with pytest.raises(SourceReadTwice):
        list_directory(_config(root))
    listing = list_directory(_config(root, on_bad_path="skip"))

    assert sorted(file.path.rpartition("/")[2] for file in listing.files) == [
        "x.parquet",
        "y.parquet",
    ]
    assert len(listing.skipped) == 1


def test_links_to_other_places_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    _touch(root, "a/x.parquet")
    _touch(tmp_path / "outside", "y.parquet")
    _touch(tmp_path / "outsider", "z.parquet")
    _linked(root, "one", tmp_path / "outside")
    _linked(root, "other", tmp_path / "outsider")
    _linked(root, "single.parquet", tmp_path / "outsider" / ".." / "file")
    _touch(tmp_path, "file")

    listing = list_directory(_config(root))

    paths = ["a/x.parquet", "one/y.parquet", "other/z.parquet", "single.parquet"]
    assert [file.path for file in listing.files] == paths


def test_name_that_is_no_text_is_refused_or_skipped(tmp_path: Path) -> None:
    _touch(tmp_path, "a/x.parquet")
    (tmp_path / "a" / os.fsdecode(b"\xff.parquet")).write_bytes(b"x")

    with pytest.raises(SourceUnreachable, match=r"xff.*below 'a' is not UTF-8"):
        list_directory(_config(tmp_path))
    listing = list_directory(_config(tmp_path, on_bad_path="skip"))

    assert [file.path for file in listing.files] == ["a/x.parquet"]
    assert len(listing.skipped) == 1


@pytest.mark.parametrize("link", ["away", "a/away"])
def test_link_to_what_is_not_mounted_is_not_left_out_silently(tmp_path: Path, link: str) -> None:
    root, place = tmp_path / "root", tmp_path / "place"
    _touch(root, "a/x.parquet")
    _linked(root, link, place)
    _linked(root, ".hidden", place)

    with pytest.raises(SourceUnreachable, match=f"the link '{link}' leads to nothing"):
        list_directory(_config(root))

    assert list_directory(_config(root, on_bad_path="skip")).skipped == (link,)
    _touch(place, "y.parquet")
    (root / ".hidden").unlink()
    found = [file.path for file in list_directory(_config(root)).files]
    assert found == sorted(["a/x.parquet", f"{link}/y.parquet"])


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_two_links_to_one_place_the_first_by_name_is_followed(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    root, place = tmp_path / "root", tmp_path / "place"
    root.mkdir()
    _touch(place, "x.parquet")
    for link in order:
        (root / link).symlink_to(place)

    listing = list_directory(_config(root, on_bad_path="skip"))

    assert [file.path for file in listing.files] == ["a/x.parquet"]
    assert listing.skipped == ("b",)
