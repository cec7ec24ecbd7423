"""Which revision of a partition stands, as its directory says it alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.errors import MarkerInvalid, PartitionPathInvalid, PublishedTableMissing
from tidegate.model.partition import Partition
from tidegate.storage import LocalStorage
from tidegate.target.standing import (
    StandingRevision,
    check_keys,
    read_partition_path,
    standing_revision,
)

if TYPE_CHECKING:
    from pathlib import Path

DAY = Partition((("dt", "2026-02-01"),))


def mark(folder: Path, name: str = "_SUCCESS", **said: Any) -> None:
    """Write a marker with some of its content changed."""
    usual = {"format": 1, "pipeline": "orders", "partition": {}, "revision": 1, "rows": 7}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({**usual, "files": [{"name": "a"}], **said}))


def found(table: Path, partition: Partition = DAY, marker: str | None = None) -> Any:
    return standing_revision(LocalStorage(), str(table), partition, marker)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("dt=2026-02-01", "dt=2026-02-01"),
        ("/dt=2026-02-01/", "dt=2026-02-01"),
        ("dt=2026-02-01/region=a b", "dt=2026-02-01/region=a b"),
        ("hour=2026-02-01 05:00", "hour=2026-02-01 05%3A00"),
        ("hour=2026-02-01 05%3A00", "hour=2026-02-01 05%3A00"),
        ("all", "all"),
    ],
)
def test_path_read_is_spelled_as_its_directory(text: str, path: str) -> None:
    assert str(read_partition_path(text)) == path


@pytest.mark.parametrize("text", ["", "/", "2026-02-01", "dt=", "=x", "dt=1//a=2", "../dt=1"])
def test_path_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PartitionPathInvalid, match="expected `key=value` for each key"):
        read_partition_path(text)


def test_marker_that_stands_says_revision_rows_and_files(tmp_path: Path) -> None:
    mark(tmp_path / "dt=2026-02-01", revision=3, files=[{"name": "a"}, {"name": "b"}])

    assert found(tmp_path) == StandingRevision(revision=3, rows=7, files=2)


def test_table_without_partitions_has_its_marker_in_the_root(tmp_path: Path) -> None:
    mark(tmp_path)

    assert found(tmp_path, Partition(())) == StandingRevision(1, 7, 1)


def test_partition_without_a_marker_has_nothing_that_stands(tmp_path: Path) -> None:
    (tmp_path / "dt=2026-02-01").mkdir()
    (tmp_path / "dt=2026-02-01" / "part-1.parquet").touch()
    mark(tmp_path / "dt=2026-02-02")

    assert found(tmp_path) is None


def test_marker_with_a_name_of_its_own_is_found_by_its_content(tmp_path: Path) -> None:
    mark(tmp_path / "dt=2026-02-01", "_DONE", revision=2)
    (tmp_path / "dt=2026-02-01" / "_other").write_bytes(b"\x00")

    assert found(tmp_path) == StandingRevision(2, 7, 1)


def test_newer_one_of_two_markers_counts_unless_one_is_named(tmp_path: Path) -> None:
    mark(tmp_path / "dt=2026-02-01", "_OLD", revision=4)
    mark(tmp_path / "dt=2026-02-01", "_NEW", revision=5)

    assert found(tmp_path).revision == 5
    assert found(tmp_path, marker="_OLD").revision == 4


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "an empty file"), (b"{", "no JSON"), (b"{}", "another format")],
    ids=["empty", "cut", "foreign"],
)
def test_marker_that_is_none_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "dt=2026-02-01").mkdir()
    (tmp_path / "dt=2026-02-01" / "_SUCCESS").write_bytes(content)

    with pytest.raises(MarkerInvalid, match=problem):
        found(tmp_path)


def test_marker_without_numbers_is_refused(tmp_path: Path) -> None:
    mark(tmp_path / "dt=2026-02-01", revision="3")

    with pytest.raises(MarkerInvalid, match="no numbers as its revision and rows"):
        found(tmp_path)


def test_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PublishedTableMissing, match="found nothing"):
        found(tmp_path / "lost")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("day=2026-02-01/region=eu", "dt=…"),
        ("dt=2026-02-02/zone=eu", "dt=…/region=…"),
        ("dt=2026-02-02", "dt=…/region=…"),
        ("dt=2026-02-02/region=eu/hour=1", "dt=…/region=…"),
    ],
    ids=["another key", "another second key", "too short", "too long"],
)
def test_partition_that_the_table_cannot_have_is_refused(
    tmp_path: Path, asked: str, expected: str
) -> None:
    mark(tmp_path / "dt=2026-02-01" / "region=eu")

    with pytest.raises(PartitionPathInvalid) as refused:
        check_keys(LocalStorage(), str(tmp_path), read_partition_path(asked))

    assert refused.value.expected == expected


def test_partition_of_a_table_without_partitions_is_refused(tmp_path: Path) -> None:
    mark(tmp_path)

    with pytest.raises(PartitionPathInvalid, match="expected `all`"):
        check_keys(LocalStorage(), str(tmp_path), DAY)


def test_partition_that_may_still_come_is_let_pass(tmp_path: Path) -> None:
    storage = LocalStorage()
    two = read_partition_path("dt=2026-02-02/region=eu")
    check_keys(storage, str(tmp_path), two)
    (tmp_path / "dt=2026-02-01").mkdir()
    check_keys(storage, str(tmp_path), two)
    mark(tmp_path / "dt=2026-02-01" / "region=eu")

    check_keys(storage, str(tmp_path), two)


@pytest.mark.parametrize(
    ("standing", "asked", "form"),
    [
        ("2026-02-01", "2026-3-2", "2026-02-01"),
        ("2026-02-01", "20260302", "2026-02-01"),
        ("2026-02-01", "2026-02-30", "2026-02-01"),
        ("2026-02-01", "2026-03", "2026-02-01"),
        ("2026-02", "2026-03-02", "2026-02"),
        ("2026-02-01T05", "2026-02-01", "2026-02-01T05"),
    ],
)
def test_time_that_is_written_unlike_all_others_is_refused(
    tmp_path: Path, standing: str, asked: str, form: str
) -> None:
    mark(tmp_path / f"dt={standing}" / "region=eu")
    mark(tmp_path / "dt=__HIVE_DEFAULT_PARTITION__" / "region=eu")

    with pytest.raises(PartitionPathInvalid) as refused:
        check_keys(LocalStorage(), str(tmp_path), read_partition_path(f"dt={asked}/region=eu"))

    assert refused.value.expected == f"a time written as in dt={form}"


@pytest.mark.parametrize(
    ("standing", "asked"),
    [
        ({"2026-02-01"}, "2026-03-02"),
        ({"2026-02-01"}, "latest"),
        ({"2026-02-01", "latest"}, "2026-3-2"),
        ({"1", "12"}, "2026"),
        ({"__HIVE_DEFAULT_PARTITION__"}, "2026-3-2"),
    ],
)
def test_value_that_the_others_do_not_speak_against_may_still_come(
    tmp_path: Path, standing: set[str], asked: str
) -> None:
    for value in standing:
        mark(tmp_path / f"dt={value}")

    check_keys(LocalStorage(), str(tmp_path), read_partition_path(f"dt={asked}"))


def test_revision_with_a_directory_of_its_own_is_found_newest_first(tmp_path: Path) -> None:
    partition = tmp_path / "dt=2026-02-01"
    for number in (1, 2):
        mark(partition / "_revisions" / f"{number:06d}-abc", revision=number)
    # One that is under way has no marker yet.
    (partition / "_revisions" / "000003-abc").mkdir()

    assert found(tmp_path).revision == 2
    check_keys(LocalStorage(), str(tmp_path), DAY)
