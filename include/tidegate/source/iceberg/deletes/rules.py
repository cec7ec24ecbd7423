"""The facts of a table that decide where its deletes apply (ICE-4.7, 4.8, 4.14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.transforms import UnknownTransform, VoidTransform
from pyiceberg.types import DoubleType, FloatType, PrimitiveType, StructType, UUIDType

from tidegate.source.iceberg.manifests.bounds import order_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import NestedField


@dataclass(frozen=True)
class KeyField:
    """A column that equality deletes may use."""

    kind: PrimitiveType
    """Its type in the newest schema that has it."""
    required: bool
    """Whether it is required in every schema that has it, so that no file has a NULL."""
    has_one_order: bool = True
    """Whether its values in all schemas can be compared, as those of promoted types can."""
    nulls_counted: bool = True
    """Whether metrics count each NULL; those of ORC do not count NULLs below a NULL struct."""


@dataclass(frozen=True)
class DeleteRules:
    """The facts of one table."""

    source: str
    global_specs: frozenset[int]
    """Specs without a field, or with void ones only: their equality deletes are global."""
    key_fields: Mapping[int, KeyField]
    """Primitive columns of every schema by field id, including dropped ones (ICE-4.8)."""
    partition_types: Mapping[int, tuple[PrimitiveType | None, ...]]
    """By spec, the type of each partition field; None if bounds must not be compared."""
    exact_paths: bool


def delete_rules(source: str, metadata: TableMetadata, path_match: str) -> DeleteRules:
    """Collect the facts from all specs and schemas.

    Args:
        source: the table, for errors.
        metadata: as pinned.
        path_match: `scheme_insensitive` or `exact` (ICE-4.14).
    """
    fields = _key_fields(metadata)
    specs = metadata.partition_specs
    return DeleteRules(
        source=source,
        global_specs=frozenset(spec.spec_id for spec in specs if _is_global(spec)),
        key_fields=fields,
        partition_types={
            spec.spec_id: tuple(_bound_type(part, fields) for part in spec.fields) for spec in specs
        },
        exact_paths=path_match == "exact",
    )


def _is_global(spec: PartitionSpec) -> bool:
    return all(isinstance(part.transform, VoidTransform) for part in spec.fields)


def _key_fields(metadata: TableMetadata) -> dict[int, KeyField]:
    found: dict[int, KeyField] = {}
    for schema in sorted(metadata.schemas, key=lambda each: each.schema_id):
        lasting = {field.field_id: field for field in _in_every_row(schema.fields)}
        for field_id in schema.field_ids:
            kind = schema.find_type(field_id)
            if isinstance(kind, PrimitiveType):
                known, field = found.get(field_id), lasting.get(field_id)
                now = KeyField(
                    kind,
                    required=field is not None and field.required,
                    nulls_counted=field is not None,
                )
                found[field_id] = now if known is None else _both(known, now)
    return found


def _both(older: KeyField, newer: KeyField) -> KeyField:
    """Return the facts of a column that are true in both of two schemas."""
    same_order = order_of(older.kind) == order_of(newer.kind)
    return KeyField(
        newer.kind,
        required=older.required and newer.required,
        has_one_order=older.has_one_order and same_order,
        nulls_counted=older.nulls_counted and newer.nulls_counted,
    )


def _in_every_row(fields: Iterable[NestedField]) -> Iterator[NestedField]:
    """Yield the fields that are not below a nullable struct, which makes required fields NULL."""
    for field in fields:
        yield field
        if field.required and isinstance(field.field_type, StructType):
            yield from _in_every_row(field.field_type.fields)


def _bound_type(part: PartitionField, fields: Mapping[int, KeyField]) -> PrimitiveType | None:
    source = fields.get(part.source_id)
    if source is None or not source.has_one_order or isinstance(part.transform, UnknownTransform):
        return None
    kind = part.transform.result_type(source.kind)
    # Floats have values outside all bounds, and engines disagree on the order of uuids.
    if isinstance(kind, PrimitiveType) and not isinstance(kind, FloatType | DoubleType | UUIDType):
        return kind
    return None
