"""Position delete files against lists of (path, position)."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import AmbiguousPath, CorruptDeletes
from tidegate.physical import ParquetRows
from tidegate.source.iceberg.deletes.positions import PositionDeletes, Target, read_positions

PATHS = ["s3://a/x", "s3a://a/x", "s3://b/x", "s3://a/y", "/x", "file:/y", None]
KEYS = {"s3://a/x": "/x", "s3a://a/x": "/x", "s3://b/x": "/x", "s3://a/y": "/y", "/x": "/x"}
KEYS["file:/y"] = "/y"

rows = st.lists(st.tuples(st.sampled_from(PATHS), st.none() | st.integers(0, 9)), max_size=30)


def _file(
    deleted: list[Any], names: tuple[str, str] = ("file_path", "pos"), ids: bool = True
) -> ParquetRows:
    reserved = (2147483546, 2147483545)
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)} if ids else None)
        for name, kind, field_id in zip(names, (pa.string(), pa.int64()), reserved, strict=True)
    ]
    fields.append(pa.field("row", pa.struct([("id", pa.int64())])))
    columns = list(zip(*deleted, strict=True)) or [(), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=False)]
    arrays.append(pa.nulls(len(deleted), fields[2].type))
    content = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), content)
    return ParquetRows(pa.BufferReader(content.getvalue()))


def _read(deleted: list[Any], wanted: str | None = None, **shape: Any) -> PositionDeletes:
    def is_wanted(key: str) -> bool:
        return wanted is None or key == wanted

    return read_positions(_file(deleted, **shape), "d.parquet", is_wanted)


def _positions(found: PositionDeletes, target: Target) -> list[int]:
    return sorted(position for part in found.of(target) for position in part.to_pylist())


@given(rows, st.sampled_from(["/x", "/y", "/z"]), st.booleans())
def test_positions_of_a_path_are_found_without_its_scheme(
    deleted: list[Any], key: str, filtered: bool
) -> None:
    found = _read(deleted, key if filtered else None)

    expected = sorted(
        position
        for path, position in deleted
        if path is not None and position is not None and KEYS[path] == key
    )
    assert _positions(found, Target(f"hdfs://nn:8020{key}")) == expected
    assert found.size_bytes >= 8 * len(expected)
    assert found.unaddressed == sum(None in row for row in deleted)


@given(rows, st.sampled_from(["s3://a/x", "s3a://a/x", "/x"]))
def test_positions_of_a_path_matched_exactly_are_its_own(deleted: list[Any], path: str) -> None:
    found = _read(deleted)

    expected = sorted(
        position for named, position in deleted if named == path and position is not None
    )
    assert _positions(found, Target(path, exact=True)) == expected


def test_positions_of_files_that_look_alike_are_told_by_whole_paths() -> None:
    found = _read([("s3://a/x", 1), ("s3://b/x", 2)])

    assert _positions(found, Target("s3://a/x", ("s3://b/x",))) == [1]
    assert _positions(found, Target("s3://b/x", ("s3://a/x",))) == [2]


def test_positions_of_a_path_that_may_be_two_files_are_ambiguous() -> None:
    found = _read([("s3://a/x", 1), ("s3a://a/x", 2)])

    with pytest.raises(AmbiguousPath) as refused:
        found.of(Target("s3://a/x", ("s3://b/x",)))

    assert refused.value.values == {
        "path": "d.parquet",
        "target": "s3a://a/x",
        "candidates": "s3://a/x and s3://b/x",
    }
    assert _positions(found, Target("s3://a/x", ("s3://b/x",), exact=True)) == [1]


def test_columns_are_found_by_reserved_ids_under_any_name() -> None:
    found = _read([("/x", 3)], names=("p", "q"))

    assert _positions(found, Target("/x")) == [3]


def test_columns_of_files_without_ids_are_found_by_name() -> None:
    found = _read([("/x", 3)], ids=False)

    assert _positions(found, Target("/x")) == [3]


def test_file_without_the_columns_is_corrupt() -> None:
    with pytest.raises(CorruptDeletes, match=r"d\.parquet: expected a column 'pos', found"):
        _read([("/x", 3)], names=("file_path", "position"), ids=False)
