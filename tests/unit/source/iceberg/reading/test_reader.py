"""Files are opened as planned and conformed by field id, or the error names file and column."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from golden_iceberg import Golden, golden, golden_copy, read
from iceberg_writer import DATA, Entry
from small_iceberg import SmallIceberg
from tidegate.config import SplitConfig
from tidegate.errors import (
    ColumnMissing,
    InvalidNameMapping,
    MissingFieldIds,
    SchemaIncompatible,
    SourceFileDamaged,
    SourceFileGone,
)
from tidegate.model.instant import InstantRange
from tidegate.model.plan import Pin
from tidegate.plan import plan_splits

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.plan import Piece
    from tidegate.source.iceberg import IcebergSource

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _planned(table: Golden, **keys: Any) -> tuple[IcebergSource, Pin, list[Piece]]:
    source = table.source(start="earliest", **keys)
    pin = source.timeline.pin(NOW)
    assert pin.head
    return source, pin, list(source.slicing.units(pin, InstantRange(None, pin.head)))


def _conform(
    source: IcebergSource, pin: Pin, piece: Piece, batch: pa.RecordBatch
) -> pa.RecordBatch:
    return source.reading.reader(pin).columns_of(piece).conform(batch, 0)


def _field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def test_columns_that_fit_are_passed_on_uncopied() -> None:
    source, pin, pieces = _planned(golden("append_v2"))
    reader = source.reading.reader(pin)
    with reader.open(pieces[0]) as file:
        _, batch = next(file.batches(file.schema.names, 0, file.rows))

    conformed = reader.columns_of(pieces[0]).conform(batch, 0)

    for before, after in zip(batch.columns, conformed.columns, strict=True):
        assert [buffer and buffer.address for buffer in before.buffers()] == [
            buffer and buffer.address for buffer in after.buffers()
        ]


def test_reading_side_of_a_stored_pin_reads_the_same() -> None:
    source, pin, pieces = _planned(golden("schema_evolution_nested_v2"))
    stored = Pin.from_text(pin.to_text())
    elsewhere = golden("schema_evolution_nested_v2").source(start="earliest")

    assert read(elsewhere, stored, pieces) == read(source, pin, pieces)


def test_columns_come_in_the_order_asked_for() -> None:
    source, pin, pieces = _planned(golden("append_v2"), read={"columns": ["amount", "id"]})

    assert read(source, pin, pieces).column_names == ["amount", "id"]
    only_id = pa.schema([_field("id", pa.int64(), 1)])
    assert source.reading.reader(pin).columns_of(pieces[0]).physical(only_id) == ["id"]


def test_unknown_column_is_refused() -> None:
    with pytest.raises(ColumnMissing, match="amuont"):
        golden("append_v2").source(read={"columns": ["amuont"]}).timeline.pin(NOW)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(pa.string(), "int64"), (pa.float64(), "int64"), (pa.struct([("x", pa.int64())]), "int64")],
    ids=["text", "double", "struct"],
)
def test_column_of_another_type_names_file_column_and_types(
    kind: pa.DataType, expected: str
) -> None:
    source, pin, pieces = _planned(golden("append_v2"))
    batch = pa.RecordBatch.from_arrays(
        [pa.nulls(1, kind)], schema=pa.schema([_field("id", kind, 1)])
    )

    with pytest.raises(SchemaIncompatible) as refused:
        _conform(source, pin, pieces[0], batch)

    assert refused.value.values == {
        "path": pieces[0].path,
        "column": "id",
        "expected": expected,
        "found": str(kind),
    }


def test_file_without_ids_and_mapping_is_refused() -> None:
    source, pin, pieces = _planned(golden("append_v2"))
    batch = pa.record_batch({"id": [1]})

    with pytest.raises(MissingFieldIds):
        _conform(source, pin, pieces[0], batch)


@pytest.mark.parametrize("mapping", ['[{"names": "id"}]', "no JSON", ""])
def test_name_mapping_that_is_no_mapping_is_refused_whatever_the_files_have(
    mapping: str, tmp_path: Path
) -> None:
    table = golden_copy("append_v2", tmp_path)
    table.edit_metadata(
        lambda raw: raw["properties"].update({"schema.name-mapping.default": mapping})
    )

    with pytest.raises(InvalidNameMapping, match="Correct that table property"):
        table.source().timeline.pin(datetime(2026, 11, 21, tzinfo=UTC))


def test_required_column_without_any_value_is_refused() -> None:
    source, pin, pieces = _planned(golden("append_v2"))
    schema = pin.details["schema"].replace('"required":false', '"required":true')
    required = replace(pin, details={**pin.details, "schema": schema})
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1])], schema=pa.schema([_field("id", pa.int64(), 1)])
    )

    with pytest.raises(SchemaIncompatible, match="'name': expected a required column"):
        _conform(source, required, pieces[0], batch)


def test_identity_values_serve_columns_that_the_file_lacks() -> None:
    source, pin, pieces = _planned(golden("transform_identity_v2"), read={"on_non_append": "skip"})
    whole = read(source, pin, pieces)
    only_id = pa.schema([_field("id", pa.int32(), 1)])

    batches = [
        _conform(source, pin, piece, pa.RecordBatch.from_arrays([ids], schema=only_id))
        for piece, ids in zip(pieces, _ids(source, pin, pieces), strict=True)
    ]

    # Every other column of this table is an identity partition column, of every type.
    assert pa.Table.from_batches(batches).to_pylist().__repr__() == whole.to_pylist().__repr__()


def _ids(source: IcebergSource, pin: Pin, pieces: list[Piece]) -> list[pa.Array]:
    return [read(source, pin, [piece]).column("id").combine_chunks() for piece in pieces]


def test_data_file_that_was_deleted_is_gone(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    source, pin, pieces = _planned(table)
    for file in table.folder.rglob("*.parquet"):
        file.unlink()

    with pytest.raises(SourceFileGone) as refused:
        source.reading.reader(pin).open(pieces[0])

    assert refused.value.path == pieces[0].path


def test_data_file_that_was_cut_is_damaged(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    source, pin, pieces = _planned(table)
    for file in table.folder.rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-1])

    with pytest.raises(SourceFileDamaged, match=r"append_v2/data/"):
        source.reading.reader(pin).open(pieces[0])
    with pytest.raises(SourceFileDamaged):
        source.slicing.row_groups(pieces[0])


def test_data_file_of_another_length_with_its_rows_is_read(tmp_path: Path) -> None:
    source, pin, pieces = _planned(golden("append_v2"))
    table = golden_copy("append_v2", tmp_path)
    for path in table.folder.rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(path).read(), path, compression="none")

    assert read(table.source(start="earliest"), pin, pieces) == read(source, pin, pieces)


def test_data_file_that_grew_is_not_read_by_bytes(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    source, pin, pieces = _planned(table)
    for path in table.folder.rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        names = rows.set_column(1, rows.schema.field(1), [["x" * 999] * rows.num_rows])
        pq.write_table(names, path, compression="none", row_group_size=1)
    at_bytes = replace(pieces[0], byte_range=(4, pieces[0].slice.file_bytes))

    with pytest.raises(SourceFileDamaged, match="found one behind them"):
        source.reading.reader(pin).open(at_bytes)


def test_row_groups_add_up_to_the_file() -> None:
    source, _, pieces = _planned(golden("sorted_bounds_v2"), read={"on_non_append": "skip"})

    for piece in pieces:
        assert sum(group.rows for group in source.slicing.row_groups(piece)) == piece.rows
        assert len(source.slicing.row_groups(piece)) == len(piece.slice.offsets)


def test_file_that_is_longer_than_its_manifest_says_is_read_to_its_last_row_group(
    tmp_path: Path,
) -> None:
    table = SmallIceberg(tmp_path, Schema(NestedField(1, "id", LongType())))
    ids = list(range(6_000))
    path, _ = table.write([{"id": number} for number in ids], "parquet")
    rows = pq.read_table(table.place(path))
    pq.write_table(rows, table.place(path), row_group_size=1_000, compression="none")
    groups = pq.ParquetFile(table.place(path)).metadata
    begins = [groups.row_group(index).column(0).dictionary_page_offset for index in range(6)]
    # The last two row groups were written after the manifest, and the length is that before.
    entry = Entry(path, DATA, "parquet", 6_000, begins[4], split_offsets=tuple(begins[:4]))
    table.add("append", entry, {})
    source = table.source()
    pin = source.timeline.pin(NOW)
    assert pin.head
    pieces = source.slicing.units(pin, InstantRange(None, pin.head), whole=True)
    small = SplitConfig.model_validate({"target_size": 10_000, "open_cost": 1})

    splits = plan_splits(pieces, source.slicing.row_groups, small, 8, 4)

    parts = [part for split in splits for sub in split.sub_splits for part in sub.pieces]
    assert [part.byte_range is not None for part in parts] == [True] * 4
    assert sorted(read(source, pin, parts).column("id").to_pylist()) == ids
