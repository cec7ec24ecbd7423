"""What a table says that decides which of its deletes apply where (ICE-4.7, 4.8, 4.14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.transforms import UnknownTransform, VoidTransform
from pyiceberg.types import DoubleType, FloatType, PrimitiveType, UUIDType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True)
class KeyField:
    """A column that equality deletes may name."""

    kind: PrimitiveType
    required: bool
    """In every schema that has it, so that no file holds a NULL."""

    @property
    def is_exact(self) -> bool:
        """Whether equality is exact; floats are refused as keys (ICE-4.8)."""
        return not isinstance(self.kind, FloatType | DoubleType)


@dataclass(frozen=True)
class DeleteRules:
    """Facts of one table."""

    source: str
    global_specs: frozenset[int]
    """Specs without a field, or with void ones only: their equality deletes are global."""
    key_fields: Mapping[int, KeyField]
    """Primitive columns of every schema by field id: dropped ones are used on (ICE-4.8)."""
    partition_types: Mapping[int, tuple[PrimitiveType | None, ...]]
    """By spec, the type of each partition field; None where bounds must not be compared."""
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
    # Types are only ever promoted, so the newest schema's holds for the bounds of all files.
    for schema in sorted(metadata.schemas, key=lambda each: each.schema_id):
        # A required field of an optional struct may be NULL all the same.
        required = {field.field_id for field in schema.fields if field.required}
        for field_id in schema.field_ids:
            kind = schema.find_type(field_id)
            if isinstance(kind, PrimitiveType):
                known = found.get(field_id)
                always = field_id in required and (known is None or known.required)
                found[field_id] = KeyField(kind, always)
    return found


def _bound_type(part: PartitionField, fields: Mapping[int, KeyField]) -> PrimitiveType | None:
    source = fields.get(part.source_id)
    if source is None or isinstance(part.transform, UnknownTransform):
        return None
    kind = part.transform.result_type(source.kind)
    # Floats have values outside all bounds, and engines disagree on the order of uuids.
    if isinstance(kind, PrimitiveType) and not isinstance(kind, FloatType | DoubleType | UUIDType):
        return kind
    return None
