"""A listing holds every file that counts, sorted, and refuses what is no partition (PC-R01–R04)."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidegate.config import OWNER_FILE, SourceConfig, read_source
from tidegate.errors import (
    FolderNotFound,
    MarkedFileWrong,
    MarkerInvalid,
    PartitionPathInvalid,
    PartitionValueInvalid,
    PublishedTablesBelow,
    SourceReadTwice,
    SourceUnreachable,
)
from tidegate.source.files.walk import list_directory
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.files.listing import Listing
    from tidegate.storage import FileDetails


def _config(root: Path, **keys: Any) -> SourceConfig:
    return read_source({"kind": "files", "path": str(root), **keys})


def listing_of(config: Any, until: datetime | None = None) -> Listing:
    return list_directory(config, LocalStorage(), until)


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

    listing = listing_of(_config(tmp_path))

    assert [file.path for file in listing.files] == ["a/c.parquet", "b.parquet"]


def test_listed_file_has_size_and_modification_time(tmp_path: Path) -> None:
    _touch(tmp_path, "a.parquet", content=b"four")

    (file,) = listing_of(_config(tmp_path)).files

    status = (tmp_path / "a.parquet").stat()
    assert (file.size, file.modified) == (4, status.st_mtime_ns)


def test_pattern_matches_the_whole_absolute_path(tmp_path: Path) -> None:
    _touch(tmp_path, "a.parquet", "a.csv", "b/a.parquet")

    listing = listing_of(_config(tmp_path, path_regex=r".*/b/[^/]+\.parquet"))

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
        listing_of(_config(tmp_path, partition_by=keys))
    listing = listing_of(_config(tmp_path, partition_by=keys, on_bad_path="skip"))

    assert [file.path for file in listing.files] == ["dt=2026-01-02/hr=4/good.parquet"]
    assert len(listing.skipped) == 1


def test_empty_directory_at_a_partition_level_must_parse_too(tmp_path: Path) -> None:
    (tmp_path / "dt=tomorrow").mkdir()

    with pytest.raises(PartitionValueInvalid) as refused:
        listing_of(_config(tmp_path, partition_by={"dt": "date"}))

    assert (refused.value.path, refused.value.value, refused.value.type) == (
        "dt=tomorrow",
        "tomorrow",
        "date",
    )


def test_root_that_is_no_directory_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FolderNotFound):
        listing_of(_config(tmp_path / "nowhere"))


def test_directory_that_cannot_be_listed_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As root no directory refuses to be listed, so the store itself has to.
    class Refusing:
        def get_file_info(self, of: Any) -> Any:
            if isinstance(of, str):
                return pa.fs.LocalFileSystem().get_file_info(of)
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tidegate.source.files.disk_folder._FILES", Refusing())

    with pytest.raises(SourceUnreachable, match="Permission denied"):
        listing_of(_config(tmp_path))


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
        listing_of(_config(root))
    listing = listing_of(_config(root, on_bad_path="skip"))

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

    listing = listing_of(_config(root))

    paths = ["a/x.parquet", "one/y.parquet", "other/z.parquet", "single.parquet"]
    assert [file.path for file in listing.files] == paths


def test_name_that_is_no_text_is_refused_or_skipped(tmp_path: Path) -> None:
    _touch(tmp_path, "a/x.parquet")
    (tmp_path / "a" / os.fsdecode(b"\xff.parquet")).write_bytes(b"x")

    with pytest.raises(SourceUnreachable, match=r"xff.*below 'a' is not UTF-8"):
        listing_of(_config(tmp_path))
    listing = listing_of(_config(tmp_path, on_bad_path="skip"))

    assert [file.path for file in listing.files] == ["a/x.parquet"]
    assert len(listing.skipped) == 1


@pytest.mark.parametrize("link", ["away", "a/away"])
def test_link_to_what_is_not_mounted_is_not_left_out_silently(tmp_path: Path, link: str) -> None:
    root, place = tmp_path / "root", tmp_path / "place"
    _touch(root, "a/x.parquet")
    _linked(root, link, place)
    _linked(root, ".hidden", place)

    with pytest.raises(SourceUnreachable, match=f"the link '{link}' leads to nothing"):
        listing_of(_config(root))

    assert listing_of(_config(root, on_bad_path="skip")).skipped == (link,)
    _touch(place, "y.parquet")
    (root / ".hidden").unlink()
    found = [file.path for file in listing_of(_config(root)).files]
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

    listing = listing_of(_config(root, on_bad_path="skip"))

    assert [file.path for file in listing.files] == ["a/x.parquet"]
    assert listing.skipped == ("b",)


def _mark(folder: Path, name: str = "_SUCCESS", **lengths: int) -> None:
    """Write a marker as Tidegate does."""
    files = [{"name": file, "length": length} for file, length in lengths.items()]
    says = {"format": 1, "pipeline": "p", "partition": {}, "revision": 1, "files": files}
    (folder / name).write_text(json.dumps(says))


def _marked(root: Path, **keys: Any) -> list[str]:
    config = _config(root, require_marker=True, **keys)
    return [file.path for file in listing_of(config).files]


def test_only_files_that_a_marker_lists_are_read(tmp_path: Path) -> None:
    _touch(tmp_path, "dt=1/a", "dt=1/not_listed", "dt=2/b")
    _mark(tmp_path / "dt=1", a=1)

    listing = listing_of(_config(tmp_path, require_marker=True, partition_by={"dt": "int"}))

    assert [file.path for file in listing.files] == ["dt=1/a"]
    assert listing.unmarked == {"dt=2"}


@pytest.mark.follows("PublishedTablesBelow")
@pytest.mark.parametrize("folder", ["dt=1", "dt=1/_revisions/000001-a"], ids=["plain", "revisions"])
def test_published_tables_below_are_not_read_as_one(tmp_path: Path, folder: str) -> None:
    for table in ("orders", "shops"):
        _touch(tmp_path, f"{table}/{folder}/a", f"{table}/{OWNER_FILE}")
        _mark(tmp_path / table / folder, a=1)

    with pytest.raises(PublishedTablesBelow, match=r"below: .*/orders and 1 more\. Name"):
        _marked(tmp_path)

    assert _marked(tmp_path / "shops") == ["dt=1/a"]
    (tmp_path / "shops" / folder / "_SUCCESS").unlink()
    assert _marked(tmp_path, path_regex=".*/plain") == []


def test_published_tables_below_are_read_as_plain_files_where_no_marker_is_required(
    tmp_path: Path,
) -> None:
    for table in ("orders", "shops"):
        _touch(tmp_path, f"{table}/dt=1/a", f"{table}/{OWNER_FILE}")
        _mark(tmp_path / table / "dt=1", a=1)

    listing = listing_of(_config(tmp_path))

    assert [file.path for file in listing.files] == ["orders/dt=1/a", "shops/dt=1/a"]


@pytest.mark.parametrize("content", [b"", b'{"creationTime": 1}'], ids=["Spark", "Paimon"])
def test_marker_of_another_engine_lets_all_files_below_count(
    tmp_path: Path, content: bytes
) -> None:
    _touch(tmp_path, "dt=1/hr=1/a", "dt=1/hr=1/.b", "dt=1/hr=2/_c", "dt=2/hr=1/d")
    _touch(tmp_path, "dt=1/_SUCCESS", content=content)

    assert _marked(tmp_path, partition_by={"dt": "int", "hr": "int"}) == ["dt=1/hr=1/a"]


def test_marker_of_a_partition_wins_over_one_above_it(tmp_path: Path) -> None:
    _touch(tmp_path, "dt=1/a", "dt=1/b", "dt=2/c")
    _touch(tmp_path, "_SUCCESS", content=b"")
    _mark(tmp_path / "dt=1", a=1)

    assert _marked(tmp_path, partition_by={"dt": "int"}) == ["dt=1/a", "dt=2/c"]


def test_marker_may_have_another_name(tmp_path: Path) -> None:
    _touch(tmp_path, "a", "_DONE")
    config = _config(tmp_path, require_marker={"name": "_DONE"})

    assert [file.path for file in listing_of(config).files] == ["a"]
    assert _marked(tmp_path) == []


@pytest.mark.parametrize("lengths", [{"a": 2}, {"a": 1, "gone": 1}], ids=["longer", "gone"])
def test_file_that_is_not_as_its_marker_lists_it_is_refused(
    tmp_path: Path, lengths: dict[str, int]
) -> None:
    _touch(tmp_path, "a")
    _mark(tmp_path, **lengths)

    with pytest.raises(MarkedFileWrong, match="as the marker"):
        _marked(tmp_path)


def test_marker_that_was_cut_is_refused(tmp_path: Path) -> None:
    _touch(tmp_path, "a")
    _touch(tmp_path, "_SUCCESS", content=b'{"format": 1, "pipel')

    with pytest.raises(MarkerInvalid):
        _marked(tmp_path)


def test_listing_says_which_files_a_marker_lists_and_what_was_joined_to_them(
    tmp_path: Path,
) -> None:
    _touch(tmp_path, "dt=1/a", "dt=1/b", "dt=2/c", "dt=2/_SUCCESS")
    _mark(tmp_path / "dt=1", a=1, b=1)
    marker = tmp_path / "dt=1" / "_SUCCESS"
    said = json.loads(marker.read_bytes())
    said["files"][1]["made_of"] = ["x", "y"]
    marker.write_text(json.dumps(said))

    listing = listing_of(_config(tmp_path, require_marker=True, partition_by={"dt": "int"}))

    assert [(file.path, file.made_of) for file in listing.files] == [
        ("dt=1/a", ()),
        ("dt=1/b", ("x", "y")),
        ("dt=2/c", None),
    ]


def test_partition_whose_marker_is_retracted_meanwhile_waits(tmp_path: Path) -> None:
    """A commit removes files after it retracted the marker, which the walk had read before."""
    _touch(tmp_path, "a", "replaced")
    _mark(tmp_path, a=1, replaced=1)

    class Committing(LocalStorage):
        def open_with_details(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
            found = super().open_with_details(path)
            for name in ("_SUCCESS", "replaced"):
                (tmp_path / name).unlink()
            return found

    config: Any = _config(tmp_path, require_marker=True)
    listing = list_directory(config, Committing())

    assert (listing.files, listing.unmarked) == ((), {""})


@pytest.mark.parametrize(("before", "found"), [(0, []), (1, ["a"])], ids=["at", "before"])
def test_marker_counts_from_its_own_time_on(tmp_path: Path, before: int, found: list[str]) -> None:
    _touch(tmp_path, "a", "_SUCCESS")
    moment = datetime(2026, 2, 1, tzinfo=UTC)
    written = (moment - timedelta(seconds=before)).timestamp()
    os.utime(tmp_path / "_SUCCESS", (written, written))
    config = _config(tmp_path, require_marker=True)

    assert [file.path for file in listing_of(config, moment).files] == found
