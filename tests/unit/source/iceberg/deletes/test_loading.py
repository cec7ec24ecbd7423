"""Delete files are loaded for one data file, shared, bounded, and refused when they are wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from tidegate.errors import (
    CorruptDeletes,
    MissingFieldIds,
    SourceFileDamaged,
    SourceFileGone,
    UnsupportedFeature,
)
from tidegate.model.file_slice import Delta, DeltaKind
from tidegate.source.iceberg.columns.columns import wanted_columns
from tidegate.source.iceberg.columns.field_ids import FieldIds
from tidegate.source.iceberg.columns.key_columns import KeyColumns
from tidegate.source.iceberg.columns.selection import Selection
from tidegate.source.iceberg.deletes import loading as module
from tidegate.source.iceberg.deletes.cache import DeleteCache
from tidegate.source.iceberg.deletes.loading import DeleteLoader
from tidegate.source.iceberg.deletes.positions import Target

if TYPE_CHECKING:
    from tidegate.physical.removed import Removed

NESTED = StructType(NestedField(5, "k", StringType(), required=True))
OLD = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "gone", StringType(), required=True),
    NestedField(3, "st", NESTED),
    NestedField(4, "x", DoubleType()),
    NestedField(6, "list", ListType(7, StringType())),
    schema_id=0,
)
NEW = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(3, "st", NESTED),
    NestedField(4, "x", DoubleType()),
    NestedField(8, "added", StringType(), initial_default="new"),
    schema_id=1,
)
TARGET = Target("s3://lake/data/a.parquet")
ENOUGH = 1 << 20


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> DeleteCache:
    """Nothing kept by other tests."""
    fresh = DeleteCache()
    monkeypatch.setattr(module, "DELETES", fresh)
    return fresh


def loader(most_bytes: int = ENOUGH, columns: tuple[str, ...] = ("id",)) -> DeleteLoader:
    chosen = Schema(*[NEW.find_field(name) for name in columns], schema_id=1)
    selection = Selection(
        {
            "schema_id": 1,
            "schema": chosen.model_dump_json(),
            "schemas": [OLD.model_dump_json(), NEW.model_dump_json()],
            "columns": list(columns),
            "row_kind": "INSERT",
            "name_mapping": None,
        }
    )
    return DeleteLoader(
        PyArrowFileIO(),
        "lake.t",
        "here",
        FieldIds("lake.t", selection),
        KeyColumns("lake.t", selection, wanted_columns(chosen)),
        most_bytes,
    )


def field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


ID = field("id", pa.int32(), 1)
GONE = field("gone", pa.string(), 2)
STRUCT = field("st", pa.struct([field("k", pa.string(), 5)]), 3)


def write(path: Path, fields: list[pa.Field], rows: list[Any], ids: tuple[int, ...]) -> Delta:
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, fields, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    # Iceberg's writer gives pages checksums, too.
    pq.write_table(table, path, write_page_checksum=True)
    size = path.stat().st_size
    return Delta(str(path), DeltaKind.KEYS, "parquet", size, len(rows), 7, ids)


def keys_of(removed: Removed) -> list[tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
    sets = [*removed.keys, *chain.from_iterable(removed.passes)]
    return [
        (each.columns, sorted((tuple(row.values()) for row in each.rows.to_pylist()), key=repr))
        for each in sets
    ]


def test_keys_come_in_the_types_of_the_data(tmp_path: Path) -> None:
    file = write(tmp_path / "d.parquet", [ID], [(1,), (None,)], (1,))

    (found,) = loader().removed([file], TARGET).keys

    assert found.columns == ("id",)
    assert found.rows.schema.field("id").type == pa.int64()
    assert found.rows.to_pylist() == [{"id": 1}, {"id": None}]


def test_keys_of_dropped_nested_and_absent_columns_are_hidden_ones(tmp_path: Path) -> None:
    fields = [GONE, STRUCT]
    rows = [("a", {"k": "x"}), ("b", {"k": None}), ("c", None)]
    file = write(tmp_path / "d.parquet", fields, rows, (5, 2, 8))

    found = keys_of(loader().removed([file], TARGET))

    names = ("equality key 2", "equality key 5", "equality key 8")
    assert found == [(names, [("a", "x", "new"), ("b", None, "new"), ("c", None, "new")])]


def test_columns_beside_the_key_are_ignored(tmp_path: Path) -> None:
    file = write(tmp_path / "d.parquet", [GONE, ID], [("a", 1)], (1,))

    assert keys_of(loader().removed([file], TARGET)) == [(("id",), [(1,)])]


def test_files_with_the_same_ids_make_one_set(tmp_path: Path) -> None:
    one = write(tmp_path / "1.parquet", [ID], [(1,)], (1,))
    two = write(tmp_path / "2.parquet", [ID, GONE], [(2, "a")], (2, 1))
    three = write(tmp_path / "3.parquet", [ID], [(3,)], (1,))

    found = keys_of(loader().removed([one, two, three], TARGET))

    assert found == [(("id",), [(1,), (3,)]), (("id", "equality key 2"), [(2, "a")])]


def test_sets_are_loaded_once_and_their_files_shared(tmp_path: Path) -> None:
    one = write(tmp_path / "1.parquet", [ID], [(1,)], (1,))
    two = write(tmp_path / "2.parquet", [ID], [(2,)], (1,))
    first = loader().removed([one, two], TARGET).keys
    for path in tmp_path.iterdir():
        path.unlink()

    again = loader().removed([two, one], TARGET).keys

    assert again[0] is first[0]
    assert keys_of(loader().removed([two], TARGET)) == [(("id",), [(2,)])]


def test_table_in_another_place_shares_nothing(tmp_path: Path) -> None:
    file = write(tmp_path / "d.parquet", [ID], [(1,)], (1,))
    loader().removed([file], TARGET)
    Path(file.path).unlink()

    with pytest.raises(SourceFileGone):
        replace(loader(), place="there").removed([file], TARGET)


@given(st.lists(st.integers(0, 99), max_size=60), st.integers(1, 4), st.integers(1, 30_000))
def test_keys_beyond_the_memory_come_in_parts_that_add_up(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], count: int, most_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("passes")
    files = [
        write(folder / f"{part}.parquet", [ID], [(n,) for n in numbers[part::count]], (1,))
        for part in range(count)
    ]

    removed = loader(most_bytes).removed(files, TARGET)

    for _ in range(2):
        found = [key for _, keys in keys_of(removed) for (key,) in keys]
        assert sorted(found) == sorted(numbers)


def test_keys_beyond_the_memory_are_held_in_part_only(tmp_path: Path) -> None:
    file = write(tmp_path / "d.parquet", [ID], [(n,) for n in range(1000)], (1,))

    removed = loader(2000).removed([file], TARGET)

    parts = list(chain.from_iterable(removed.passes))
    assert removed.keys == ()
    assert len(parts) > 50
    assert max(part.rows.num_rows for part in parts) <= 20


def _position_file(path: Path, rows: list[tuple[str, int]]) -> Delta:
    fields = [
        field("file_path", pa.string(), 2147483546),
        field("pos", pa.int64(), 2147483545),
    ]
    return replace(write(path, fields, rows, ()), kind=DeltaKind.POSITIONS)


@pytest.mark.parametrize("most_bytes", [ENOUGH, 1], ids=["kept", "too large to keep"])
def test_positions_of_several_files_are_joined(tmp_path: Path, most_bytes: int) -> None:
    files = [
        _position_file(tmp_path / "1.parquet", [("s3a://lake/data/a.parquet", 4), ("/b", 1)]),
        _position_file(tmp_path / "2.parquet", [("/data/a.parquet", 9), ("/data/a.parquet", 4)]),
    ]

    removed = loader(most_bytes).removed(files, TARGET)

    assert removed.positions.to_pylist() == [4, 9]
    assert removed.keys == removed.passes == ()


def test_no_deletes_remove_nothing() -> None:
    removed = loader().removed([], TARGET)

    assert (removed.positions, removed.keys, removed.passes) == (None, (), ())


@pytest.mark.parametrize(
    ("ids", "error", "problem"),
    [
        ((), CorruptDeletes, "expected equality ids, found none"),
        ((99,), CorruptDeletes, "found 99"),
        ((3,), CorruptDeletes, "keys of primitive types, found struct"),
        ((7,), CorruptDeletes, "found 7"),
        ((4,), UnsupportedFeature, "a key of type double"),
    ],
    ids=["none", "unknown", "struct", "list element", "double"],
)
def test_ids_that_are_no_key_are_refused(
    tmp_path: Path, ids: tuple[int, ...], error: type[Exception], problem: str
) -> None:
    file = write(tmp_path / "d.parquet", [ID], [(1,)], ids)

    with pytest.raises(error, match=problem):
        loader().removed([file], TARGET)


def test_file_without_ids_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "d.parquet", [pa.field("id", pa.int64())], [(1,)], (1,))

    with pytest.raises(MissingFieldIds, match=r"d\.parquet"):
        loader().removed([file], TARGET)


def test_file_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    file = replace(write(tmp_path / "d", [ID], [(1,)], (1,)), file_format="lance")

    with pytest.raises(UnsupportedFeature, match="a delete file in lance"):
        loader().removed([file], TARGET)


@pytest.mark.parametrize("content", [DeltaKind.KEYS, DeltaKind.POSITIONS])
@pytest.mark.parametrize("part", range(8))
def test_file_damaged_in_any_part_is_named_or_right(
    tmp_path: Path, content: DeltaKind, part: int
) -> None:
    rows = [("/data/a.parquet", n) for n in range(500)]
    file = _position_file(tmp_path / "d.parquet", rows)
    if content == DeltaKind.KEYS:
        file = write(tmp_path / "d.parquet", [ID], [(n,) for n in range(500)], (1,))
    raw = Path(file.path).read_bytes()
    low, high = len(raw) * part // 8, len(raw) * (part + 1) // 8
    expected = loader().removed([file], TARGET)
    Path(file.path).write_bytes(raw[:low] + b"\xff" * (high - low) + raw[high:])

    found, error = _outcome(replace(loader(), place="damaged"), file)

    if error is not None:
        assert error.path == file.path
    else:
        assert found is not None
        assert keys_of(found) == keys_of(expected)
        assert found.positions == expected.positions


def _outcome(loading: DeleteLoader, file: Delta) -> tuple[Removed | None, SourceFileDamaged | None]:
    try:
        return loading.removed([file], TARGET), None
    except SourceFileDamaged as damaged:
        return None, damaged


def test_file_with_other_rows_than_its_manifest_says_is_damaged(tmp_path: Path) -> None:
    file = write(tmp_path / "d.parquet", [ID], [(1,)], (1,))

    with pytest.raises(SourceFileDamaged, match="expected 2 rows, found 1"):
        loader().removed([replace(file, rows=2)], TARGET)
