"""A folder of any format has the same rows; what a file does not fit is told before it is read."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from folder_files import DECLARED, SCHEMA, WRITERS, Rows, csv_bytes, json_bytes, put
from golden_iceberg import read
from tidegate.config import SplitConfig, read_source
from tidegate.errors import (
    FileOfOtherFormat,
    ListedFileChanged,
    SchemaIncompatible,
    SourceFileDamaged,
    SourceRewritten,
    SourceRowInvalid,
)
from tidegate.model.event_column import EventColumn
from tidegate.model.instant import InstantRange
from tidegate.plan import plan_splits
from tidegate.source.files import FilesSource
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.slicing import Units

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)
ROWS: Rows = [
    {"id": 1, "at": datetime(2026, 2, 1, 10, tzinfo=UTC), "amount": 10.5, "note": 'a,"b"\nc'},
    {"id": 2, "at": datetime(2026, 2, 2, 11, tzinfo=UTC), "amount": None, "note": None},
    {"id": 3, "at": None, "amount": -0.25, "note": "é"},
]


class Folder:
    """A directory of files with its listings beside it."""

    def __init__(self, place: Path) -> None:
        self.root = place / "table"
        self.listings = place / "listings"
        self.root.mkdir()

    def source(self, **keys: Any) -> FilesSource:
        config = read_source({"kind": "files", "path": str(self.root), **keys})
        return FilesSource(config, LocalStorage(), str(self.listings))

    def units(self, **keys: Any) -> Units:
        source = self.source(**keys)
        pin = source.timeline.pin(NOW)
        assert pin.head
        return source.slicing.units(pin, InstantRange(None, pin.head))

    def rows(self, **keys: Any) -> pa.Table:
        """Read everything."""
        source = self.source(**keys)
        pin = source.timeline.pin(NOW)
        assert pin.head
        return read(source, pin, source.slicing.units(pin, InstantRange(None, pin.head)))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_are_the_same_in_every_format(folder: Folder, ending: str) -> None:
    put(folder.root, f"a.{ending}", ROWS[:2])
    put(folder.root, f"b.{ending}", ROWS[2:])

    found = folder.rows(format=WRITERS[ending][0])

    assert found.schema.names == SCHEMA.names
    assert found.to_pylist() == ROWS


@pytest.mark.parametrize("ending", ["csv", "json", "csv.gz", "json.gz"])
def test_columns_that_are_declared_have_their_types(folder: Folder, ending: str) -> None:
    put(folder.root, f"a.{ending}", ROWS)

    found = folder.rows(format=WRITERS[ending][0], columns={**DECLARED, "amount": "decimal(9,2)"})

    assert found.schema.field("amount").type == pa.decimal128(9, 2)
    assert found["id"].to_pylist() == [1, 2, 3]
    assert [str(value) for value in found["amount"].to_pylist()] == ["10.50", "None", "-0.25"]


def test_columns_of_csv_files_are_told_by_their_headers(folder: Folder) -> None:
    (folder.root / "a.csv").write_bytes(b"id,text\n1,x\n")
    (folder.root / "b.csv").write_bytes(b"text,more,id\ny,5,2\n")
    (folder.root / "c.csv").write_bytes(b"id\n3\n")
    (folder.root / "d.csv").write_bytes(b"id,text\n")

    found = folder.rows(format="csv")

    assert [list(row.values()) for row in found.to_pylist()] == [
        [1, "x", None],
        [2, "y", 5],
        [3, None, None],
    ]


def test_columns_without_a_header_are_told_by_their_positions(folder: Folder) -> None:
    (folder.root / "a.csv").write_bytes(b"1,x\n2,y\n")

    keys = {"csv": {"header": False}, "columns": {"id": "int", "text": "string"}}
    found = folder.rows(format="csv", read={"columns": ["text", "id"]}, **keys)

    assert found.to_pylist() == [{"text": "x", "id": 1}, {"text": "y", "id": 2}]


def test_partition_columns_come_from_the_path_in_every_format(folder: Folder) -> None:
    for ending in WRITERS:
        put(folder.root / ending / "region=eu", f"a.{ending}", ROWS)
        keys = {"path": str(folder.root / ending), "partition_by": {"region": "string"}}

        found = folder.rows(format=WRITERS[ending][0], **keys)

        assert found["region"].to_pylist() == ["eu"] * 3


def test_types_are_inferred_from_all_new_files_and_stay(folder: Folder) -> None:
    (folder.root / "a.csv").write_bytes(b"n,m\n1,\n")
    (folder.root / "b.csv").write_bytes(b"n,m\n1.5,\n")
    first = folder.source(format="csv").timeline.pin(NOW)
    (folder.root / "c.csv").write_bytes(b"n,m,k\n7,8,9\n")
    source = folder.source(format="csv")

    pin = source.timeline.pin(NOW + HOUR, after=first.head)

    assert dict(first.schema) == {"n": "double", "m": "string"}
    assert dict(pin.schema) == {"n": "double", "m": "string", "k": "int64"}
    assert first.head
    assert pin.head
    units = source.slicing.units(pin, InstantRange(first.head, pin.head))
    assert read(source, pin, units).to_pylist() == [{"n": 7.0, "m": "8", "k": 9}]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("b.csv", b"id,amount\n5,1\n6,eight\n", "row 3, column 'amount': expected a value of type"),
        ("b.csv", b"id,amount\n5\n", "row 2: expected 2 values, found 1"),
        ("b.json", b'{"id": 5}\n{"id": "six"}\n', "row 2, column 'id': expected a value of type"),
    ],
    ids=["value", "ragged", "json"],
)
def test_row_that_does_not_fit_is_told_with_file_row_and_column(
    folder: Folder, name: str, content: bytes, problem: str
) -> None:
    (folder.root / name).write_bytes(content)
    columns = {"id": "long", "amount": "double"}
    keys = {"format": name.partition(".")[2], "columns": columns}

    with pytest.raises(SourceRowInvalid) as refused:
        folder.rows(**keys)

    assert f"{folder.root}/{name}: {problem}" in str(refused.value)


def test_column_in_place_of_a_declared_one_is_refused_before_a_window_is_planned(
    folder: Folder,
) -> None:
    (folder.root / "a.csv").write_bytes(b"id,Amount\n1,2\n")

    with pytest.raises(SchemaIncompatible, match="others that it does not declare: 'Amount'"):
        folder.units(format="csv", columns={"id": "long", "amount": "double"})


@pytest.mark.parametrize("names", ["id,more", "id"], ids=["more", "fewer"])
def test_file_may_have_more_columns_than_declared_or_fewer(folder: Folder, names: str) -> None:
    (folder.root / "a.csv").write_bytes(f"{names}\n{'1,2' if ',' in names else '1'}\n".encode())
    declared = {"id": "long"} if "," in names else {"id": "long", "more": "long"}

    found = folder.rows(format="csv", columns=declared)

    assert found.to_pylist() == [{"id": 1, "more": None} if len(declared) > 1 else {"id": 1}]


def test_column_that_a_header_names_twice_is_refused(folder: Folder) -> None:
    (folder.root / "a.csv").write_bytes(b"id,id\n1,2\n")

    with pytest.raises(SchemaIncompatible, match="2 of them"):
        folder.units(format="csv", columns={"id": "long"})


@pytest.mark.parametrize("expected", ["orc", "avro", "csv", "json"])
@pytest.mark.parametrize("found", ["parquet", "orc", "avro", "csv.gz"])
def test_file_of_another_format_is_told(folder: Folder, expected: str, found: str) -> None:
    put(folder.root, f"a.{found}", ROWS).rename(folder.root / "part-0")
    declared = {"columns": DECLARED} if expected in {"csv", "json"} else {}

    if expected == WRITERS[found][0] and found != "csv.gz":
        assert folder.rows(format=expected, **declared).to_pylist() == ROWS
    else:
        with pytest.raises(FileOfOtherFormat, match=f"format: {expected}"):
            folder.units(format=expected, **declared)


@pytest.mark.parametrize("ending", WRITERS)
def test_file_that_was_cut_is_refused_where_its_format_says_it(folder: Folder, ending: str) -> None:
    path = put(folder.root, f"a.{ending}", ROWS)
    path.write_bytes(path.read_bytes()[:-9])
    declared = {"columns": DECLARED} if WRITERS[ending][0] in {"csv", "json"} else {}

    with pytest.raises(SourceFileDamaged, match=r"a\."):
        folder.rows(format=WRITERS[ending][0], **declared)


@pytest.mark.parametrize(("name", "write"), [("a.csv", csv_bytes), ("a.json", json_bytes)])
def test_digit_in_the_middle_of_a_large_text_is_a_change(
    folder: Folder, name: str, write: Any
) -> None:
    """The end of a text says nothing of the rest, so that it is compared whole."""
    path = folder.root / name
    content = write([{"id": number + 100_000} for number in range(50_000)])
    path.write_bytes(content)
    keys = {"format": name.partition(".")[2]}
    source = folder.source(**keys)
    pin = source.timeline.pin(NOW)
    assert pin.head
    planned = list(source.slicing.units(pin, InstantRange(None, pin.head)))

    path.write_bytes(content.replace(b"125000", b"925000"))

    with pytest.raises(ListedFileChanged):
        read(source, pin, planned)
    again = folder.source(**keys)
    later = again.timeline.pin(NOW + HOUR, after=pin.head)
    with pytest.raises(SourceRewritten):
        again.timeline.instants(later, pin.head)


@pytest.mark.parametrize("ending", WRITERS)
def test_file_that_was_only_touched_is_the_same(folder: Folder, ending: str) -> None:
    path = put(folder.root, f"a.{ending}", ROWS)
    keys = {"format": WRITERS[ending][0]}
    taken = folder.source(**keys).timeline.pin(NOW).head

    os.utime(path, (1, 1))

    source = folder.source(**keys)
    pin = source.timeline.pin(NOW + HOUR, after=taken)
    assert source.timeline.instants(pin, taken) == ()


def test_small_text_files_share_a_sub_split_and_a_large_one_is_not_cut(folder: Folder) -> None:
    for number in range(5):
        (folder.root / f"{number}.csv").write_bytes(b"id\n1\n2\n")
    (folder.root / "large.csv").write_bytes(b"id\n" + b"1234567\n" * 10_000)
    units = folder.units(format="csv")

    config = SplitConfig(max_rows=5_000)
    splits = plan_splits(units, lambda _: (), config, 8, 1)

    pieces = [len(part.pieces) for split in splits for part in split.sub_splits]
    assert sorted(pieces) == [1, 5]
    assert [piece.rows for piece in units][:5] == [2] * 5
    assert abs(units.pieces[5].rows - 10_000) < 100


def test_footer_of_an_orc_file_is_read_for_its_stripes(folder: Folder) -> None:
    put(folder.root, "a.orc", ROWS)
    (piece,) = folder.units(format="orc")

    groups = folder.source(format="orc").slicing.row_groups(piece)

    assert [group.rows for group in groups] == [3]
    assert (piece.rows, piece.byte_range, piece.slice.file_format) == (3, None, "orc")


@pytest.mark.parametrize("ending", WRITERS)
def test_event_times_are_known_where_the_format_tells_them(folder: Folder, ending: str) -> None:
    put(folder.root, f"a.{ending}", ROWS)
    source = folder.source(format=WRITERS[ending][0])
    pin = source.timeline.pin(NOW)
    assert pin.head

    (piece,) = source.slicing.units(
        pin, InstantRange(None, pin.head), event_time=EventColumn("at", "UTC")
    )

    assert (piece.event_times is not None) == (ending == "parquet")


METADATA = ["file.path", "file.name", "file.size", "file.modification-time"]


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_columns_about_files_tell_where_a_row_comes_from(folder: Folder, ending: str) -> None:
    paths = [put(folder.root, f"{name}.{ending}", ROWS[:1]) for name in "ab"]
    os.utime(paths[0], ns=(1, 1_234_567_891))

    found = folder.rows(format=ending, metadata_columns=METADATA).to_pylist()

    assert [row["_file_path"] for row in found] == [str(path) for path in paths]
    assert [row["_file_name"] for row in found] == [path.name for path in paths]
    assert [row["_file_size"] for row in found] == [path.stat().st_size for path in paths]
    assert found[0]["_file_modification_time"] == datetime(1970, 1, 1, 0, 0, 1, 234567, UTC)


def test_columns_about_files_are_read_only_if_wanted(folder: Folder) -> None:
    put(folder.root, "a.parquet", ROWS[:1])

    found = folder.rows(metadata_columns=METADATA, read={"columns": ["_file_name", "id"]})

    assert found.to_pylist() == [{"_file_name": "a.parquet", "id": 1}]


def test_filter_on_columns_about_files_leaves_files_out_unopened(folder: Folder) -> None:
    put(folder.root, "a.parquet", ROWS)
    put(folder.root, "b.parquet", ROWS)
    keys = {"metadata_columns": METADATA, "read": {"filter": "_file_name = 'b.parquet'"}}
    pin = folder.source(**keys).timeline.pin(NOW)
    (folder.root / "a.parquet").unlink()
    assert pin.head

    units = folder.source(**keys).slicing.units(pin, InstantRange(None, pin.head))

    assert [piece.path.rpartition("/")[2] for piece in units] == ["b.parquet"]


def test_some_columns_are_read_of_objects_that_have_more(folder: Folder) -> None:
    put(folder.root, "a.json", ROWS)

    found = folder.rows(format="json", read={"columns": ["id", "amount"]})

    assert found.to_pylist() == [{"id": row["id"], "amount": row["amount"]} for row in ROWS]
