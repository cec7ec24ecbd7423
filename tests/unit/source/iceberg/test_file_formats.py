"""ORC and Avro files give what Parquet files give: by field id, by name, damaged, or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from golden_iceberg import Golden, golden, golden_copy, lines, read
from tidegate.errors import ColumnUnreadable, SourceFileDamaged, UnsupportedFeature
from tidegate.model.instant import InstantRange
from tidegate.physical.avro_container import write_container
from tidegate.physical.protocol import FIELD_ID

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.model.plan import Piece, Pin
    from tidegate.source.iceberg import IcebergSource

NOW = datetime(2026, 11, 21, tzinfo=UTC)
EVOLVED = [
    "schema_evolution_v2",
    "schema_evolution_nested_v2",
    "initial_default_v3",
    "struct_fields_replaced_v2",
]
OTHER_TYPES = ["types_parquet_v2", "types_time_v2", "types_uuid_fixed_v2"]
"""Not for ORC without attributes, nor in pyarrow's hands."""
AVRO = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def _planned(table: Golden, **read_keys: Any) -> tuple[IcebergSource, Pin, list[Piece]]:
    keys = {"on_non_append": "skip", **read_keys}
    source = table.source(start="earliest", read=keys)
    pin = source.timeline.pin(NOW)
    assert pin.head
    return source, pin, list(source.slicing.units(pin, InstantRange(None, pin.head)))


class _Avro:
    """Writes rows in Avro; field ids are kept where they are wanted."""

    def __init__(self, *, with_ids: bool) -> None:
        self._with_ids = with_ids
        self._named = 0

    def write(self, rows: pa.Table, path: Path) -> None:
        schema = self._record(list(rows.schema))
        with path.open("wb") as file:
            values = _avro_values(rows.to_pylist(), pa.list_(pa.struct(list(rows.schema))))
            fastavro.writer(file, schema, values, codec="deflate")

    def _record(self, fields: list[pa.Field]) -> dict[str, Any]:
        return {"type": "record", "name": self._name(), "fields": [self._field(f) for f in fields]}

    def _field(self, field: pa.Field) -> dict[str, Any]:
        return {
            "name": field.name,
            "type": ["null", self._type(field.type)],
            **self._id("field-id", field),
        }

    def _type(self, kind: pa.DataType) -> Any:
        if pa.types.is_struct(kind):
            return self._record(list(kind))
        if pa.types.is_list(kind):
            items = ["null", self._type(kind.value_field.type)]
            return {"type": "array", "items": items, **self._id("element-id", kind.value_field)}
        if pa.types.is_map(kind):
            pair = self._record(
                [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
            )
            pair["fields"][0]["type"] = self._type(kind.key_type)
            return {"type": "array", "logicalType": "map", "items": pair}
        return self._leaf(kind)

    def _leaf(self, kind: pa.DataType) -> Any:
        if pa.types.is_decimal(kind):
            decimal = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
            return {"type": "fixed", "name": self._name(), "size": 16, **decimal}
        if pa.types.is_timestamp(kind):
            logical = "timestamp-micros" if kind.tz else "local-timestamp-micros"
            adjusted = {"adjust-to-utc": True} if kind.tz else {}
            return {"type": "long", "logicalType": logical, **adjusted}
        if pa.types.is_fixed_size_binary(kind):
            return {"type": "fixed", "name": self._name(), "size": kind.byte_width}
        return AVRO[kind]

    def _id(self, key: str, field: pa.Field) -> dict[str, int]:
        text = (field.metadata or {}).get(FIELD_ID)
        return {key: int(text)} if text and self._with_ids else {}

    def _name(self) -> str:
        self._named += 1
        return f"r{self._named}"


def _avro_values(value: Any, kind: pa.DataType) -> Any:
    """Give maps as the pairs that they are in Avro."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {child.name: _avro_values(value[child.name], child.type) for child in kind}
    if pa.types.is_list(kind):
        return [_avro_values(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [{"key": key, "value": _avro_values(item, kind.item_type)} for key, item in value]
    return value


def _write_orc(rows: pa.Table, path: Path) -> None:
    # pyarrow writes no attributes into ORC files: their columns are known by name.
    orc.write_table(rows.replace_schema_metadata(None), path)


def _stored(rows: pa.Table) -> pa.Table:
    """Give uuids as their bytes."""
    fields = [
        field.with_type(field.type.storage_type)
        if isinstance(field.type, pa.BaseExtensionType)
        else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _mapping(fields: list[pa.Field]) -> list[dict[str, Any]]:
    """The name mapping that fits the field ids of a schema."""
    mapped = []
    for field in fields:
        kind = field.type
        children = list(kind) if pa.types.is_struct(kind) else []
        if pa.types.is_list(kind):
            children = [kind.value_field.with_name("element")]
        if pa.types.is_map(kind):
            children = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
        mapped.append(
            {
                "field-id": int(field.metadata[FIELD_ID]),
                "names": [field.name],
                "fields": _mapping(children),
            }
        )
    return mapped


WRITERS: dict[str, tuple[str, bool, Callable[[pa.Table, Path], None]]] = {
    "avro-by-id": ("avro", True, lambda rows, path: _Avro(with_ids=True).write(rows, path)),
    "avro-by-name": ("avro", False, lambda rows, path: _Avro(with_ids=False).write(rows, path)),
    "orc-by-name": ("orc", False, _write_orc),
}


@pytest.mark.parametrize(
    ("case", "writer"),
    [(case, writer) for case in EVOLVED for writer in WRITERS]
    + [(case, writer) for case in OTHER_TYPES for writer in WRITERS if "avro" in writer],
)
def test_evolved_columns_of_another_format_are_those_of_parquet(
    case: str, writer: str, tmp_path: Path
) -> None:
    file_format, has_ids, write = WRITERS[writer]
    source, pin, pieces = _planned(golden(case))
    reader = source.reading.reader(pin)

    for piece in pieces:
        with reader.open(piece) as file:
            batches = [batch for _, batch in file.batches(file.schema.names, 0, file.rows)]
            schema = file.schema
        rows = _stored(pa.Table.from_batches(batches, schema))
        path = tmp_path / f"rows.{file_format}"
        write(rows, path)
        size = path.stat().st_size
        slice = replace(piece.slice, path=str(path), file_format=file_format, file_bytes=size)
        other = replace(piece, slice=slice, size_bytes=size)
        mapping = {} if has_ids else {"name_mapping": json.dumps(_mapping(list(schema)))}
        named = replace(pin, details={**pin.details, **mapping})

        assert lines(read(source, named, [other])) == lines(read(source, pin, [piece]))


def test_timestamp_that_no_array_can_hold_names_file_and_column() -> None:
    source, pin, pieces = _planned(golden("orc_far_timestamps_v2"))

    with pytest.raises(ColumnUnreadable) as refused:
        read(source, pin, pieces)

    assert refused.value.path == pieces[0].path
    assert refused.value.column == "ts"


def test_column_that_is_not_asked_for_may_be_unreadable() -> None:
    source, pin, pieces = _planned(golden("orc_far_timestamps_v2"), columns=["id"])

    assert sorted(read(source, pin, pieces).column("id").to_pylist()) == [1, 2, 3, 4]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda whole: bytes(len(whole)),
    "only-the-beginning": lambda whole: whole[:20] + bytes(len(whole) - 20),
    "half": lambda whole: whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2),
    "other-end": lambda whole: whole[:-30] + b"\xff" * 30,
    "other-middle": lambda whole: whole[:60] + b"\xff" * (len(whole) - 120) + whole[-60:],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("case", ["types_orc_v2", "types_avro_v2", "types_parquet_v2"])
def test_damaged_file_is_named(case: str, damage: str, tmp_path: Path) -> None:
    source, pin, pieces = _planned(golden_copy(case, tmp_path))
    suffix = pieces[0].slice.file_format
    for file in (tmp_path / case / "table" / "data").rglob(f"*.{suffix}"):
        file.write_bytes(DAMAGES[damage](file.read_bytes()))

    with pytest.raises(SourceFileDamaged) as refused:
        read(source, pin, pieces)

    assert refused.value.path in {piece.path for piece in pieces}


def test_avro_type_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    source, pin, pieces = _planned(golden("types_avro_v2"))
    path = tmp_path / "rows.avro"
    fields = [{"name": "id", "type": ["int", "string"], "field-id": 1}]
    path.write_bytes(write_container({"type": "record", "name": "t", "fields": fields}, 0, b""))
    slice = replace(pieces[0].slice, path=str(path), file_bytes=path.stat().st_size)

    with pytest.raises(UnsupportedFeature, match="an Avro union of several types"):
        source.reading.reader(pin).open(replace(pieces[0], slice=slice))
