"""The meaning of the columns of an Avro file, and the conversion from plainly decoded arrays.

Names of types are resolved, and maps are read as the arrays of pairs that they are in bytes: the
decoder handles only records, arrays, and inline plain types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.physical import avro_arrays
from tidegate.physical.avro_primitives import PLAIN, AvroType, enum, fixed, plain, primitive
from tidegate.physical.protocol import id_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class AvroField:
    """A column, or a field of a record."""

    name: str
    type: AvroType | None
    """None: the type null, which has no bytes and is not decoded."""
    field_id: Any
    """As in the header; None if it has none."""

    @property
    def field(self) -> pa.Field:
        """The field with its id under `FIELD_ID`."""
        return _arrow_field(self.name, self.type, self.field_id)


def read_columns(schema: Any) -> tuple[AvroField, ...]:
    """Read a file's schema from its header.

    Raises:
        pa.ArrowNotImplementedError: a union of several types, or a type within itself.
        pa.ArrowInvalid: it is not the schema of a record.
    """
    try:
        return _SchemaReader().fields(schema)
    except (KeyError, TypeError, AttributeError, ValueError) as broken:
        if isinstance(broken, pa.ArrowException):
            raise
        problem = f"the Avro schema cannot be read: {broken!r}"
        raise pa.ArrowInvalid(problem) from broken


def with_zones(schema: Any) -> Any:
    """Return a schema in which timestamps are instants, unless it says that they are none."""
    if isinstance(schema, list):
        return [with_zones(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    zoned = {} if "adjust-to-utc" in schema else {"adjust-to-utc": True}
    is_instant = str(schema.get("logicalType")).startswith("timestamp-")
    return {key: with_zones(value) for key, value in schema.items()} | (zoned if is_instant else {})


def record(fields: Sequence[AvroField], name: str) -> Any:
    """Return the schema for decoding a record."""
    decoded = [
        {"name": child.name, "type": child.type.decoded}
        for child in fields
        if child.type is not None
    ]
    return {"type": "record", "name": name, "fields": decoded}


@dataclass
class _SchemaReader:
    """Reads one schema, and remembers the types that it names."""

    named: dict[str, Any] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    """Named types around the one being read."""
    made: int = 0

    def fields(self, schema: Any) -> tuple[AvroField, ...]:
        """Read the fields of a record."""
        name = self._remember(schema)
        if name in self.open:
            problem = f"an Avro type within itself: {name}"
            raise pa.ArrowNotImplementedError(problem)
        self.open.append(name)
        fields = tuple(
            AvroField(child["name"], self._nullable(child["type"]), child.get("field-id"))
            for child in schema["fields"]
        )
        self.open.pop()
        return fields

    def _nullable(self, schema: Any) -> AvroType | None:
        """Read the type of a value that may be missing; None if it is always missing."""
        if not isinstance(schema, list):
            return None if _kind(schema) == "null" else self._type(schema)
        kinds = [member for member in schema if _kind(member) != "null"]
        if len(kinds) > 1:
            problem = f"an Avro union of several types: {schema}"
            raise pa.ArrowNotImplementedError(problem)
        if not kinds:
            problem = f"an Avro union without a type: {schema}"
            raise pa.ArrowNotImplementedError(problem)
        read = self._type(kinds[0])
        decoded = [member if _kind(member) == "null" else read.decoded for member in schema]
        return AvroType(read.meaning, decoded, read.build)

    def _type(self, schema: Any) -> AvroType:
        if isinstance(schema, str) and schema in PLAIN:
            return plain(schema, PLAIN[schema])
        if isinstance(schema, str):
            return self._type(self.named[schema])
        if isinstance(schema, list) or isinstance(schema["type"], (dict, list)):
            nested = self._nullable(schema if isinstance(schema, list) else schema["type"])
            return _required(nested)
        return self._of_kind(schema["type"], schema)

    def _of_kind(self, kind: str, schema: Mapping[str, Any]) -> AvroType:
        if kind == "record":
            return self._record(schema)
        if kind == "array":
            return self._array(schema)
        if kind == "map":
            key = AvroField("key", plain("string", pa.string()), schema.get("key-id"))
            value = AvroField("value", self._nullable(schema["values"]), schema.get("value-id"))
            return self._map(key, value)
        if kind == "enum":
            self._remember(schema)
            return enum(schema["symbols"])
        if kind == "fixed":
            self._remember(schema)
            return fixed(schema, self._name())
        return primitive(kind, schema) if kind in PLAIN else self._type(kind)

    def _record(self, schema: Mapping[str, Any]) -> AvroType:
        fields = self.fields(schema)
        meaning = pa.struct([child.field for child in fields])
        builds = tuple(child.type.build if child.type else None for child in fields)
        return AvroType(
            meaning,
            record(fields, self._name()),
            lambda array: avro_arrays.structs(array, meaning, builds),
        )

    def _array(self, schema: Mapping[str, Any]) -> AvroType:
        if schema.get("logicalType") == "map":
            key, value = self.fields(schema["items"])
            return self._map(key, value)
        items = _required(self._nullable(schema["items"]))
        meaning = pa.list_(_arrow_field("element", items, schema.get("element-id")))
        decoded = {"type": "array", "items": items.decoded}
        return AvroType(
            meaning, decoded, lambda array: avro_arrays.lists(array, meaning, items.build)
        )

    def _map(self, key: AvroField, value: AvroField) -> AvroType:
        keys, values = _required(key.type), _required(value.type)
        meaning = pa.map_(key.field.with_nullable(False), value.field)
        items = record((key, value), self._name())
        return AvroType(
            meaning,
            {"type": "array", "items": items},
            lambda array: avro_arrays.maps(array, meaning, keys.build, values.build),
        )

    def _remember(self, schema: Mapping[str, Any]) -> str:
        """Store a named type under its short and its full name."""
        name = str(schema["name"])
        self.named[name] = self.named[name.rpartition(".")[2]] = schema
        if "namespace" in schema:
            self.named[f"{schema['namespace']}.{name}"] = schema
        return name

    def _name(self) -> str:
        # Types are decoded inline, never by reference, so that each needs its own name.
        self.made += 1
        return f"t{self.made}"


def _kind(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, dict) else schema


def _arrow_field(name: str, kind: AvroType | None, field_id: Any) -> pa.Field:
    metadata = id_metadata(name, field_id)
    return pa.field(name, kind.meaning if kind else pa.null(), metadata=metadata)


def _required(kind: AvroType | None) -> AvroType:
    if kind is None:
        problem = "an Avro array or map of nothing"
        raise pa.ArrowNotImplementedError(problem)
    return kind
