"""Write Iceberg tables by hand, file by file: every kind of delete that writers of ours lack.

Knows the format's bytes only; what a table means says `random_iceberg`.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

DATA, POSITIONS, KEYS = 0, 1, 2
ADDED, EXISTING, DELETED = 1, 0, 2
PATH_ID, POS_ID = 2147483546, 2147483545
ROW_ID, UPDATED_ID = 2147483540, 2147483539
ARROW = {
    "int": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
_EPOCH = date(1970, 1, 1)
AVRO: Mapping[str, Any] = {
    **{name: name for name in ("int", "long", "string", "double", "boolean")},
    "date": {"type": "int", "logicalType": "date"},
    "decimal(9,2)": {
        "type": "fixed",
        "name": "decimal_9_2",
        "size": 4,
        "logicalType": "decimal",
        "precision": 9,
        "scale": 2,
    },
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
    "fixed[3]": {"type": "fixed", "name": "fixed_3", "size": 3},
}


@dataclass(frozen=True)
class Column:
    """A column as a schema or a data file has it."""

    id: int
    name: str
    type: str
    default: Any = None


@dataclass(frozen=True)
class Entry:
    """A data or delete file as manifests describe it."""

    path: str
    content: int
    format: str
    rows: int
    size: int
    spec: int = 0
    partition: tuple[Any, ...] = ()
    equality_ids: tuple[int, ...] = ()
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None
    values: Mapping[int, int] | None = None
    """By column how many values are counted; None: all rows, wherever NULLs are counted."""
    nulls: Mapping[int, int] | None = None
    bounds: Mapping[int, tuple[bytes, bytes]] | None = None
    split_offsets: tuple[int, ...] = ()
    sequence: int = 0
    file_sequence: int = 0
    snapshot: int = 0
    first_row_id: int | None = None


@dataclass(frozen=True)
class Spec:
    """A partition spec of identity and void fields."""

    id: int
    fields: tuple[tuple[int, str, str, str], ...] = ()
    """Field id, source column's id as text, transform, type of the values."""

    def to_json(self) -> dict[str, Any]:
        """As the metadata has it."""
        fields = [
            {
                "field-id": number,
                "source-id": int(source),
                "transform": transform,
                "name": f"p{number}",
            }
            for number, source, transform, _ in self.fields
        ]
        return {"spec-id": self.id, "fields": fields}


@dataclass
class Manifest:
    """A manifest in memory and where it stands."""

    content: int
    spec: Spec
    entries: list[tuple[int, Entry]]
    snapshot: int
    sequence: int
    path: str = ""
    length: int = 0
    first_row_id: int | None = None
    summaries: tuple[tuple[bool, bytes | None, bytes | None], ...] | None = None
    """By partition field: whether there is a NULL, lower and upper bound."""

    @property
    def live(self) -> list[Entry]:
        """The entries that are in the table."""
        return [entry for status, entry in self.entries if status != DELETED]

    def count(self, status: int) -> tuple[int, int]:
        """Files and rows of one status."""
        rows = [entry.rows for found, entry in self.entries if found == status]
        return len(rows), sum(rows)


@dataclass
class Files:
    """Writes the files of one table below a folder."""

    root: Path
    location: str
    version: int
    _made: int = field(default=0)

    def name(self, kind: str, suffix: str) -> str:
        """A new file name below the table."""
        self._made += 1
        return f"{kind}/{self._made:05d}.{suffix}"

    def path(self, name: str) -> str:
        """A file as metadata spells it."""
        return f"{self.location}/{name}"

    def write_rows(
        self,
        kind: str,
        file_format: str,
        columns: Sequence[Column],
        rows: Sequence[Mapping[int, Any]],
    ) -> tuple[str, int]:
        """Write rows by field id; the name and length of the file."""
        name = self.name(kind, file_format)
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if file_format == "avro":
            _write_avro_rows(place, columns, rows)
        else:
            _write_parquet_rows(place, columns, rows)
        return self.path(name), place.stat().st_size

    def write_vectors(self, positions: Mapping[str, set[int]]) -> list[tuple[str, str, int, int]]:
        """Write one Puffin file of deletion vectors: data file, Puffin file, offset, length."""
        name = self.name("data", "puffin")
        content, blobs = b"PFA1", []
        for path, deleted in positions.items():
            bitmap = b"\xd1\xd3\x39\x64" + BitMap64(deleted).serialize()
            blob = struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
            blobs.append((path, self.path(name), len(content), len(blob)))
            content += blob
        described = [
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": offset,
                "length": length,
                "properties": {
                    "referenced-data-file": path,
                    "cardinality": str(len(positions[path])),
                },
            }
            for path, _, offset, length in blobs
        ]
        footer = json.dumps({"blobs": described}).encode()
        content += b"PFA1" + footer + struct.pack("<I", len(footer)) + bytes(4) + b"PFA1"
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return blobs

    def write_manifest(
        self, manifest: Manifest, schema: Mapping[str, Any], *, inherit: bool
    ) -> None:
        """Write a manifest; with `inherit`, added entries leave out what the list says."""
        name = self.name("metadata", "avro")
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        records = [
            _entry_record(status, entry, manifest.spec, inherit=inherit)
            for status, entry in manifest.entries
        ]
        told = {
            "schema": json.dumps(schema),
            "partition-spec": json.dumps(manifest.spec.to_json()["fields"]),
            "partition-spec-id": str(manifest.spec.id),
            "format-version": str(self.version),
            "content": "data" if manifest.content == DATA else "deletes",
        }
        with place.open("wb") as out:
            fastavro.writer(
                out,
                _entry_schema(manifest.spec, self.version),
                records,
                codec="deflate",
                metadata=told,
            )
        manifest.path, manifest.length = self.path(name), place.stat().st_size

    def write_list(self, snapshot: int, manifests: Sequence[Manifest]) -> str:
        """Write a manifest list; its path."""
        name = f"metadata/snap-{snapshot}.avro"
        with (self.root / name).open("wb") as out:
            records = [_list_record(manifest) for manifest in manifests]
            fastavro.writer(out, _list_schema(self.version), records, codec="deflate")
        return self.path(name)

    def write_metadata(self, metadata: Mapping[str, Any]) -> Path:
        """Write table metadata."""
        place = self.root / self.name("metadata", "metadata.json")
        place.write_text(json.dumps(metadata))
        return place


def bound(kind: str, value: Any) -> bytes | None:
    """A value as metrics have it; None for a type without bounds here."""
    if kind in ("int", "date"):
        number = value if isinstance(value, int) else (value - _EPOCH).days
        return struct.pack("<i", number)
    if kind == "long":
        return struct.pack("<q", value)
    return value.encode() if kind == "string" else None


def new_uuid(seed: int) -> str:
    """A table's identity, the same for the same seed."""
    return str(uuid.UUID(int=seed))


def _write_parquet_rows(
    place: Path, columns: Sequence[Column], rows: Sequence[Mapping[int, Any]]
) -> None:
    fields = [
        pa.field(column.name, ARROW[column.type], metadata={"PARQUET:field_id": str(column.id)})
        for column in columns
    ]
    arrays = [
        pa.array([row.get(column.id) for row in rows], ARROW[column.type]) for column in columns
    ]
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=pa.schema(fields)),
        place,
        row_group_size=7,
        write_page_checksum=True,
    )


def _write_avro_rows(
    place: Path, columns: Sequence[Column], rows: Sequence[Mapping[int, Any]]
) -> None:
    fields = [_optional(f"c{column.id}", AVRO[column.type], column.id) for column in columns]
    schema = {"type": "record", "name": "table", "fields": fields}
    records = [{f"c{column.id}": row.get(column.id) for column in columns} for row in rows]
    with place.open("wb") as out:
        fastavro.writer(out, schema, records, codec="deflate", sync_interval=64)


def _optional(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _required(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _pairs(name: str, number: int, key: int, value: int, kind: str) -> dict[str, Any]:
    fields = [_required("key", "int", key), _required("value", kind, value)]
    record = {"type": "record", "name": f"k{key}_v{value}", "fields": fields}
    return _optional(name, {"type": "array", "items": record, "logicalType": "map"}, number)


def _items(name: str, number: int, element: int, kind: Any) -> dict[str, Any]:
    return _optional(name, {"type": "array", "items": kind, "element-id": element}, number)


def _entry_schema(spec: Spec, version: int) -> dict[str, Any]:
    partition = {"type": "record", "name": "r102", "fields": list(_partition_fields(spec))}
    file_fields = [
        _required("content", "int", 134),
        _required("file_path", "string", 100),
        _required("file_format", "string", 101),
        _required("partition", partition, 102),
        _required("record_count", "long", 103),
        _required("file_size_in_bytes", "long", 104),
        _pairs("value_counts", 109, 119, 120, "long"),
        _pairs("null_value_counts", 110, 121, 122, "long"),
        _pairs("lower_bounds", 125, 126, 127, "bytes"),
        _pairs("upper_bounds", 128, 129, 130, "bytes"),
        _items("split_offsets", 132, 133, "long"),
        _items("equality_ids", 135, 136, "int"),
        _optional("referenced_data_file", "string", 143),
    ]
    if version >= 3:
        file_fields += [
            _optional("first_row_id", "long", 142),
            _optional("content_offset", "long", 144),
            _optional("content_size_in_bytes", "long", 145),
        ]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _required("status", "int", 0),
            _optional("snapshot_id", "long", 1),
            _optional("sequence_number", "long", 3),
            _optional("file_sequence_number", "long", 4),
            _required("data_file", {"type": "record", "name": "r2", "fields": file_fields}, 2),
        ],
    }


def _partition_fields(spec: Spec) -> Iterator[dict[str, Any]]:
    """Avro defines a named type where it is first used, and names it from then on."""
    named: set[str] = set()
    for number, _, _, kind in spec.fields:
        schema = AVRO[kind]
        name = schema.get("name") if isinstance(schema, dict) else None
        yield _optional(f"p{number}", name if name in named else schema, number)
        if name is not None:
            named.add(name)


def _entry_record(status: int, entry: Entry, spec: Spec, *, inherit: bool) -> dict[str, Any]:
    left_out = inherit and status == ADDED
    nulls, bounds = entry.nulls or {}, entry.bounds or {}
    file = {
        "content": entry.content,
        "file_path": entry.path,
        "file_format": entry.format.upper(),
        "partition": {
            f"p{number}": value
            for (number, _, _, _), value in zip(spec.fields, entry.partition, strict=True)
        },
        "record_count": entry.rows,
        "file_size_in_bytes": entry.size,
        "value_counts": _map(entry.values or dict.fromkeys(nulls, entry.rows)),
        "null_value_counts": _map(nulls),
        "lower_bounds": _map({column: pair[0] for column, pair in bounds.items()}),
        "upper_bounds": _map({column: pair[1] for column, pair in bounds.items()}),
        "split_offsets": list(entry.split_offsets) or None,
        "equality_ids": list(entry.equality_ids) or None,
        "referenced_data_file": entry.referenced,
        "first_row_id": None if left_out else entry.first_row_id,
        "content_offset": entry.offset,
        "content_size_in_bytes": entry.length,
    }
    return {
        "status": status,
        "snapshot_id": None if left_out else entry.snapshot,
        # A compaction keeps the age of its rows, so its data sequence number is always written.
        "sequence_number": None
        if left_out and entry.sequence == entry.file_sequence
        else entry.sequence,
        "file_sequence_number": None if left_out else entry.file_sequence,
        "data_file": file,
    }


def _map(values: Mapping[int, Any]) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in values.items()] or None


def _list_schema(version: int) -> dict[str, Any]:
    fields = [
        _required("manifest_path", "string", 500),
        _required("manifest_length", "long", 501),
        _required("partition_spec_id", "int", 502),
        _required("content", "int", 517),
        _required("sequence_number", "long", 515),
        _required("min_sequence_number", "long", 516),
        _required("added_snapshot_id", "long", 503),
        *(
            _required(f"{kind}_files_count", "int", number)
            for kind, number in (("added", 504), ("existing", 505), ("deleted", 506))
        ),
        *(
            _required(f"{kind}_rows_count", "long", number)
            for kind, number in (("added", 512), ("existing", 513), ("deleted", 514))
        ),
    ]
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _required("contains_null", "boolean", 509),
            _optional("lower_bound", "bytes", 510),
            _optional("upper_bound", "bytes", 511),
        ],
    }
    fields.append(_items("partitions", 507, 508, summary))
    if version >= 3:
        fields.append(_optional("first_row_id", "long", 520))
    return {"type": "record", "name": "manifest_file", "fields": fields}


def _list_record(manifest: Manifest) -> dict[str, Any]:
    counts = {
        kind: manifest.count(status)
        for kind, status in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED))
    }
    sequences = [entry.sequence for entry in manifest.live]
    return {
        "manifest_path": manifest.path,
        "manifest_length": manifest.length,
        "partition_spec_id": manifest.spec.id,
        "content": 0 if manifest.content == DATA else 1,
        "sequence_number": manifest.sequence,
        "min_sequence_number": min(sequences, default=manifest.sequence),
        "added_snapshot_id": manifest.snapshot,
        **{f"{kind}_files_count": files for kind, (files, _) in counts.items()},
        **{f"{kind}_rows_count": rows for kind, (_, rows) in counts.items()},
        "first_row_id": manifest.first_row_id,
        "partitions": None
        if manifest.summaries is None
        else [
            {"contains_null": has_null, "lower_bound": lower, "upper_bound": upper}
            for has_null, lower, upper in manifest.summaries
        ],
    }
