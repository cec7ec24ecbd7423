"""A small Iceberg table of any columns, partition fields and file formats, with its metrics.

Data files get the metrics that the engine's writers give them, with the gaps that those have: ORC
counts no value below a NULL struct, Avro counts nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, ListType, MapType, NestedField, StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from iceberg_writer import ADDED, DATA, DELETED, KEYS, Entry, Files, Manifest, Spec, new_uuid
from tidegate.config import read_source
from tidegate.source.iceberg import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyiceberg.types import IcebergType, PrimitiveType

Row = dict[str, Any]
LOCATION = "/small/table"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class SmallIceberg:
    """A table that grows file by file; each file is a commit of its own."""

    root: Path
    schema: Schema
    spec: Spec = field(default_factory=lambda: Spec(0))
    version: int = 2

    def __post_init__(self) -> None:
        self.files = Files(self.root, LOCATION, self.version)
        self.schemas = [self.schema]
        self.manifests: list[Manifest] = []
        self.snapshots: list[dict[str, Any]] = []
        self.parent: int | None = None

    # What is written

    def append(
        self, rows: Sequence[Row], file_format: str = "parquet", partition: tuple[Any, ...] = ()
    ) -> str:
        """Add a data file; gives its path."""
        path, size = self.write(rows, file_format)
        return self.add(
            "append",
            Entry(path, DATA, file_format, len(rows), size, self.spec.id, partition),
            metrics_of(self.schema, rows, file_format),
        )

    def delete(
        self, keys: Sequence[Row], ids: tuple[int, ...], file_format: str = "parquet"
    ) -> str:
        """Add an equality delete file, for the whole table; gives its path."""
        path, size = self.write(keys, file_format)
        return self.add(
            "delete",
            Entry(path, KEYS, file_format, len(keys), size, equality_ids=ids),
            metrics_of(self.schema, keys, file_format),
        )

    def add(self, operation: str, entry: Entry, metrics: Mapping[str, Any]) -> str:
        """Commit one file that is written already; gives its path."""
        number = len(self.snapshots) + 1
        described = replace(
            entry, **metrics, sequence=number, file_sequence=number, snapshot=number
        )
        spec = self.spec if described.content == DATA else Spec(0)
        manifest = Manifest(
            0 if described.content == DATA else 1, spec, [(ADDED, described)], number, number
        )
        if spec.fields and described.partition:
            manifest.summaries = tuple(_summary(value) for value in described.partition)
        self.files.write_manifest(manifest, self._schema_json(self.schema), inherit=True)
        self.manifests.append(manifest)
        self._commit(operation, number)
        return entry.path

    def overwrite(self, rows: Sequence[Row], file_format: str = "parquet") -> str:
        """Put one data file in the place of all that there is; gives its path."""
        number = len(self.snapshots) + 1
        removed = []
        for manifest in self.manifests:
            entries = [(DELETED, replace(entry, snapshot=number)) for entry in manifest.live]
            gone = Manifest(manifest.content, manifest.spec, entries, number, number)
            self.files.write_manifest(gone, self._schema_json(self.schema), inherit=True)
            removed.append(gone)
        self.manifests = removed
        path, size = self.write(rows, file_format)
        entry = Entry(path, DATA, file_format, len(rows), size, self.spec.id)
        self.add("overwrite", entry, metrics_of(self.schema, rows, file_format))
        self.manifests = self.manifests[-1:]
        return path

    def create_or_replace(self, schema: Schema) -> None:
        """Go on as CREATE OR REPLACE does: without files and parent, columns keep their ids."""
        self.evolve(schema)
        self.manifests, self.parent = [], None

    def evolve(self, schema: Schema) -> None:
        """Go on with another schema."""
        self.schema = Schema(*schema.fields, schema_id=len(self.schemas))
        self.schemas.append(self.schema)

    def write(self, rows: Sequence[Row], file_format: str) -> tuple[str, int]:
        """Write rows to a new file; its path and length."""
        name = self.files.name("data", file_format)
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[file_format](place, self.schema, rows)
        return self.files.path(name), place.stat().st_size

    # What is read

    def config(self, **keys: Any) -> dict[str, Any]:
        """Write the metadata and give a pipeline's `source`."""
        metadata = self.files.write_metadata(self._metadata())
        return {
            "kind": "iceberg",
            "metadata": str(metadata),
            "location_rewrite": {LOCATION: str(self.root)},
            **keys,
        }

    def source(self, **keys: Any) -> IcebergSource:
        """Open the table."""
        return IcebergSource(read_source(self.config(**keys)), retry_pause_seconds=0)

    def place(self, path: str) -> Path:
        """Where a file stands."""
        return self.root / path.removeprefix(f"{LOCATION}/")

    def _commit(self, operation: str, number: int) -> None:
        self.snapshots.append(
            {
                "snapshot-id": number,
                **({"parent-snapshot-id": self.parent} if self.parent else {}),
                "sequence-number": number,
                "timestamp-ms": 1_700_000_000_000 + number * 60_000,
                "manifest-list": self.files.write_list(number, self.manifests),
                "summary": {"operation": operation},
                "schema-id": self.schema.schema_id,
                **({"first-row-id": 0, "added-rows": 0} if self.version >= 3 else {}),
            }
        )
        self.parent = number

    def _metadata(self) -> dict[str, Any]:
        head = self.parent
        specs = {spec.id: spec for spec in (Spec(0), self.spec)}
        made = {
            "format-version": self.version,
            "table-uuid": new_uuid(7),
            "location": LOCATION,
            "last-sequence-number": len(self.snapshots),
            "last-updated-ms": 1_700_000_000_000 + len(self.snapshots) * 60_000,
            "last-column-id": max(schema.highest_field_id for schema in self.schemas),
            "schemas": [self._schema_json(schema) for schema in self.schemas],
            "current-schema-id": self.schema.schema_id,
            "partition-specs": [spec.to_json() for spec in specs.values()],
            "default-spec-id": self.spec.id,
            "last-partition-id": 1000 + len(self.spec.fields),
            # pyarrow writes no field ids into ORC files.
            "properties": {
                "schema.name-mapping.default": self.schema.name_mapping.model_dump_json()
            },
            "current-snapshot-id": head or -1,
            "snapshots": self.snapshots,
            "snapshot-log": [
                {"snapshot-id": item["snapshot-id"], "timestamp-ms": item["timestamp-ms"]}
                for item in self.snapshots
            ],
            "metadata-log": [],
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "refs": {"main": {"snapshot-id": head, "type": "branch"}} if head else {},
        }
        if self.version >= 3:
            made["next-row-id"] = 0
        return made

    @staticmethod
    def _schema_json(schema: Schema) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(schema.model_dump_json())
        return made


def metrics_of(schema: Schema, rows: Sequence[Row], file_format: str) -> dict[str, Any]:
    """Give the metrics that Iceberg's own writers give a file."""
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    bounds: dict[int, tuple[bytes, bytes]] = {}
    if file_format == "avro":
        return {}
    for leaf, parents in _leaves(schema.fields, ()):
        found = [_value(row, (*parents, leaf.name)) for row in rows]
        held = [value for value in found if value is not None]
        below = [row for row in rows if not parents or _value(row, parents) is not None]
        counted_nulls = len(rows) - len(held)
        if file_format == "orc" and len(below) == len(held):
            counted_nulls = 0
        values[leaf.field_id], nulls[leaf.field_id] = len(held) + counted_nulls, counted_nulls
        if held and not isinstance(leaf.field_type, BooleanType):
            bounds[leaf.field_id] = (
                _bound(leaf.field_type, min(held)),
                _bound(leaf.field_type, max(held)),
            )
    return {"values": values, "nulls": nulls, "bounds": bounds}


def _leaves(
    fields: Sequence[NestedField], parents: tuple[str, ...]
) -> Iterator[tuple[NestedField, tuple[str, ...]]]:
    for each in fields:
        if isinstance(each.field_type, StructType):
            yield from _leaves(each.field_type.fields, (*parents, each.name))
        elif not isinstance(each.field_type, ListType | MapType):
            yield each, parents


def _value(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row.get(name)
    return row


def _bound(kind: PrimitiveType, value: Any) -> bytes:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        count = moment - _EPOCH
        value = (count.days * 86_400 + count.seconds) * 1_000_000 + count.microseconds
    elif isinstance(value, date):
        value = (value - _EPOCH.date()).days
    return to_bytes(kind, value)


def _summary(value: Any) -> tuple[bool, bytes | None, bytes | None]:
    """Describe one partition value; other values than numbers are left without bounds."""
    if not isinstance(value, int):
        return value is None, None, None
    length = 4 if -(1 << 31) <= value < 1 << 31 else 8
    found = value.to_bytes(length, "little", signed=True)
    return False, found, found


def _table(schema: Schema, rows: Sequence[Row], *, with_ids: bool) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema_to_pyarrow(schema, include_field_ids=with_ids))


def _write_parquet(place: Path, schema: Schema, rows: Sequence[Row]) -> None:
    pq.write_table(_table(schema, rows, with_ids=True), place)


def _write_orc(place: Path, schema: Schema, rows: Sequence[Row]) -> None:
    # Behind a NULL struct inside of one that is there, pyarrow writes the values of other rows.
    held = [
        {
            field.name: _filled(field.field_type, row.get(field.name), is_inner=False)
            for field in schema.fields
        }
        for row in rows
    ]
    orc.write_table(_table(schema, held, with_ids=False), place)


def _filled(kind: IcebergType, value: Any, *, is_inner: bool = True) -> Any:
    """Put a struct of NULLs in the place of a NULL one inside of another."""
    if not isinstance(kind, StructType) or (value is None and not is_inner):
        return value
    held = value or {}
    return {field.name: _filled(field.field_type, held.get(field.name)) for field in kind.fields}


def _write_avro(place: Path, schema: Schema, rows: Sequence[Row]) -> None:
    with place.open("wb") as out:
        fastavro.writer(out, AvroSchemaConversion().iceberg_to_avro(schema, "table"), list(rows))


_WRITERS = {"parquet": _write_parquet, "orc": _write_orc, "avro": _write_avro}
