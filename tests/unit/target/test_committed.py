"""Readers find what markers list, whatever the markers are called and the files look like."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tidegate import read_changes, read_committed
from tidegate.config import OWNER_FILE
from tidegate.errors import (
    ColumnTypesDiffer,
    CommittedFileMissing,
    ConfigInvalid,
    MarkerInvalid,
    MarkerMissing,
    PartitionNotThere,
    PartitionPathInvalid,
    PublishedTableMissing,
    PublishedTablesBelow,
)
from tidegate.physical.parts import open_part
from tidegate.storage import Stores
from tidegate.target import committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.physical.parts import PartRows


def write_partition(
    root: Path,
    path: str,
    values: dict[str, str | None],
    *files: pa.Table,
    marker: str | None = "_SUCCESS",
    revision: int = 1,
) -> None:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"part-{revision}-{number}.parquet" for number in range(len(files))]
    for name, table in zip(names, files, strict=True):
        pq.write_table(table, folder / name)
    said = {
        "format": 1,
        "pipeline": "orders",
        "partition": values,
        "revision": revision,
        "files": [{"name": name} for name in names],
    }
    if marker:
        (folder / marker).write_text(json.dumps(said))


def rows_of(root: Path, **keys: Any) -> list[dict[str, Any]]:
    return sorted(read_committed(root, **keys).to_table().to_pylist(), key=str)


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int32())})


@pytest.mark.parametrize("name", ["_SUCCESS", "_DONE", ".done", "_done.json"])
def test_marker_of_any_name_is_found(tmp_path: Path, name: str) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1, 2), marker=name)
    write_partition(tmp_path, "dt=2", {"dt": "2"}, ids(3), marker=None)

    assert rows_of(tmp_path) == [{"id": 1, "dt": "1"}, {"id": 2, "dt": "1"}]


def test_hidden_files_of_others_are_no_markers(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), marker="_DONE")
    (tmp_path / "dt=1" / "._DONE.crc").write_bytes(b"crc")
    (tmp_path / "dt=1" / "_metadata").write_bytes(b"{ no JSON")
    (tmp_path / ".tidegate.owner").write_text('{"format": 1, "pipeline": "orders"}')
    write_partition(tmp_path, "_trash/dt=1", {"dt": "1"}, ids(9), marker="_DONE")

    assert rows_of(tmp_path) == [{"id": 1, "dt": "1"}]


def test_only_markers_of_the_given_name_count(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), marker="_DONE")
    write_partition(tmp_path, "dt=2", {"dt": "2"}, ids(2), marker="_OTHER")

    assert rows_of(tmp_path, marker="_DONE") == [{"id": 1, "dt": "1"}]


def test_newer_of_two_markers_counts_where_the_marker_was_renamed(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), marker="_SUCCESS", revision=1)
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1, 2), marker="_DONE", revision=2)

    assert [row["id"] for row in rows_of(tmp_path)] == [1, 2]


@pytest.mark.parametrize("name", ["_SUCCESS", "_DONE"])
@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 2}'], ids=["empty", "cut", "other"])
def test_broken_marker_is_refused_and_not_passed_over(
    tmp_path: Path, name: str, content: bytes
) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), marker=name)
    write_partition(tmp_path, "dt=2", {"dt": "2"}, ids(2), marker=None)
    (tmp_path / "dt=2" / name).write_bytes(content)

    with pytest.raises(MarkerInvalid, match=f"dt=2/{name}"):
        read_committed(tmp_path)


@pytest.mark.parametrize("end", [".csv", ".csv.gz", ".json"])
@pytest.mark.parametrize("says", [{}, {"reading": {"format": "csv", "columns": []}}])
def test_marker_that_tells_no_columns_of_files_of_text_is_refused_by_its_name(
    tmp_path: Path, end: str, says: dict[str, Any]
) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, marker="_DONE")
    (tmp_path / "dt=1" / f"part-0{end}").write_text("id\n1\n")
    marker = tmp_path / "dt=1" / "_DONE"
    files = [{"name": f"part-0{end}"}]
    marker.write_text(json.dumps({**json.loads(marker.read_text()), **says, "files": files}))

    with pytest.raises(MarkerInvalid, match=r"dt=1/_DONE: .* no columns"):
        read_committed(tmp_path)


@pytest.mark.follows("MarkerMissing")
def test_files_without_any_marker_are_an_error_not_an_empty_table(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), marker=None)

    with pytest.raises(MarkerMissing, match=r"dt=1/part-1-0\.parquet.*success-file"):
        read_committed(tmp_path)
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1))

    assert rows_of(tmp_path) == [{"id": 1, "dt": "1"}]


@pytest.mark.follows("PublishedTableMissing")
@pytest.mark.parametrize("is_file", [False, True], ids=["nothing", "a file"])
def test_path_without_a_folder_is_an_error_not_an_empty_table(
    tmp_path: Path, *, is_file: bool
) -> None:
    wrong, right = tmp_path / "public", tmp_path / "published"
    if is_file:
        wrong.write_text("")
    write_partition(right, "dt=1", {"dt": "1"}, ids(1))

    with pytest.raises(PublishedTableMissing, match=r"public: expected.*Correct the path"):
        read_committed(wrong)

    assert rows_of(right) == [{"id": 1, "dt": "1"}]


def let_come(monkeypatch: pytest.MonkeyPatch, *commits: Callable[[], None]) -> None:
    """Let a commit come right behind each listing of files."""
    coming, listed = list(commits), Stores.list_files

    def list_files(storage: Stores, root: str) -> list[str]:
        found = listed(storage, root)
        if coming:
            coming.pop(0)()
        return found

    monkeypatch.setattr(Stores, "list_files", list_files)


def test_marker_that_a_commit_takes_back_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1))
    write_partition(tmp_path, "dt=2", {"dt": "2"}, ids(2))
    let_come(monkeypatch, (tmp_path / "dt=1" / "_SUCCESS").unlink)

    assert rows_of(tmp_path) == [{"id": 2, "dt": "2"}]


def test_file_that_a_commit_takes_away_meanwhile_is_looked_for_by_its_new_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1))

    def commit(path: str, *form: Any, **more: Any) -> PartRows:
        if path.endswith("part-1-0.parquet"):
            Path(path).unlink()
            write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1, 2), revision=2)
        return open_part(path, *form, **more)

    monkeypatch.setattr(committed, "open_part", commit)

    assert [row["id"] for row in rows_of(tmp_path)] == [1, 2]


def test_file_that_a_marker_lists_and_is_not_there_is_named(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), ids(2))
    (tmp_path / "dt=1" / "part-1-1.parquet").unlink()

    with pytest.raises(CommittedFileMissing, match=r"dt=1/part-1-1\.parquet: expected"):
        read_committed(tmp_path)


def test_two_keys_are_both_read_from_the_marker(tmp_path: Path) -> None:
    for currency in ("EUR", "USD"):
        path = f"dt=1/currency={currency}"
        write_partition(tmp_path, path, {"dt": "1", "currency": currency}, ids(1))

    chosen = read_committed(tmp_path).to_table(filter=ds.field("currency") == "EUR")

    assert chosen.to_pylist() == [{"id": 1, "dt": "1", "currency": "EUR"}]


def test_table_with_nothing_committed_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / ".tidegate.owner").write_text("{}")

    assert rows_of(tmp_path) == []


def test_null_and_every_text_come_back_from_the_marker(tmp_path: Path) -> None:
    write_partition(tmp_path, "k=none", {"k": None}, ids(1))
    write_partition(tmp_path, "k=__DEFAULT_PARTITION__", {"k": "__DEFAULT_PARTITION__"}, ids(2))
    write_partition(tmp_path, "k=a%2Fb", {"k": "a/b"}, ids(3))

    assert {row["id"]: row["k"] for row in rows_of(tmp_path)} == {
        1: None,
        2: "__DEFAULT_PARTITION__",
        3: "a/b",
    }


def test_keys_stand_behind_the_columns_in_the_order_of_the_path(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1/currency=EUR", {"currency": "EUR", "dt": "1"}, ids(1))

    assert read_committed(tmp_path).schema.names == ["id", "dt", "currency"]


def test_files_of_different_schemas_are_read_as_the_wider_types(tmp_path: Path) -> None:
    old = pa.table({"id": pa.array([1], pa.int32()), "x": pa.array([0.5], pa.float32())})
    new = pa.table({"id": pa.array([2**40], pa.int64()), "y": ["new"]})
    write_partition(tmp_path, "dt=1", {"dt": "1"}, old, new)

    dataset = read_committed(tmp_path)

    assert dataset.schema == pa.schema(
        [("id", pa.int64()), ("x", pa.float32()), ("y", pa.string()), ("dt", pa.string())]
    )
    assert rows_of(tmp_path) == [
        {"id": 1, "x": 0.5, "y": None, "dt": "1"},
        {"id": 2**40, "x": None, "y": "new", "dt": "1"},
    ]
    assert dataset.count_rows() == 2


def test_types_that_cannot_be_joined_are_refused(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=1", {"dt": "1"}, ids(1), pa.table({"id": ["one"]}))

    with pytest.raises(ColumnTypesDiffer, match=r"'id': .*part-1-1\.parquet has string.*int32"):
        read_committed(tmp_path)


def test_tables_below_are_not_read_as_one(tmp_path: Path) -> None:
    for table in ("orders", "shops"):
        write_partition(tmp_path / table, "dt=1", {"dt": "1"}, ids(1))
        (tmp_path / table / OWNER_FILE).write_text("{}")

    with pytest.raises(PublishedTablesBelow, match=r"below: .*/orders and 1 more. Name"):
        read_committed(tmp_path)

    assert rows_of(tmp_path / "shops") == [{"id": 1, "dt": "1"}]


@pytest.mark.parametrize("read", [read_committed, read_changes])
@pytest.mark.parametrize(
    ("s3", "told"),
    [
        (
            {"endpoints": "http://x:the-secret@y"},
            "unknown key; did you mean 'endpoint'?",
        ),
        ({"endpoint": "http://x:the-secret@y"}, "`s3.endpoint`: "),
        ({"secret_key": "the-secret", "access_key": "a"}, "`s3.secret_key`: is written in plain"),
        ({"region": ["the-secret"]}, "`s3.region`: "),
    ],
)
def test_store_that_is_given_wrongly_is_told_by_key_and_without_values(
    tmp_path: Path, read: Callable[..., object], s3: dict[str, str], told: str
) -> None:
    place = str(tmp_path) if read is read_committed else {"kind": "files", "path": str(tmp_path)}

    with pytest.raises(ConfigInvalid) as refused:
        read(place, s3=s3)

    assert told in str(refused.value)
    shown = "".join(traceback.format_exception(refused.value))
    assert "the-secret" not in shown.replace("read(place, s3=s3)", "")


def test_one_partition_may_be_named_without_a_list(tmp_path: Path) -> None:
    write_partition(tmp_path, "dt=2026-03-02", {"dt": "2026-03-02"}, ids(1))
    write_partition(tmp_path, "dt=2026-03-03", {"dt": "2026-03-03"}, ids(2))

    assert rows_of(tmp_path, partitions="dt=2026-03-02") == [{"id": 1, "dt": "2026-03-02"}]


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("day=2026-03-02", "dt=…"),
        ("dt=2026-3-2", "a time written as in dt=2026-03-02"),
        ("2026-03-02", "`key=value`"),
        ("dt=2026-03-02/town=a", "dt=…/region=…"),
    ],
)
def test_partition_that_the_table_cannot_have_is_told_from_one_that_may_come(
    tmp_path: Path, partition: str, expected: str
) -> None:
    values = {"dt": "2026-03-02", "region": "eu"}
    write_partition(tmp_path, "dt=2026-03-02/region=eu", values, ids(1))

    with pytest.raises(PartitionPathInvalid, match=expected):
        read_committed(tmp_path, partitions=[partition])
    with pytest.raises(PartitionPathInvalid, match=expected):
        read_committed(tmp_path, at_revision={partition: 1})
    for later in ("dt=2026-03-03", "dt=2026-03-02/region=us"):
        with pytest.raises(PartitionNotThere):
            read_committed(tmp_path, partitions=[later])
