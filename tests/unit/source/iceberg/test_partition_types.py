"""Partition fields may share a type that Avro names once, whatever else they hold."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    FixedType,
    LongType,
    NestedField,
    UUIDType,
)

from iceberg_writer import DATA, Entry, Spec
from small_iceberg import SmallIceberg
from tidegate import read_changes

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.types import PrimitiveType

ONE, OTHER = UUID(int=1), UUID(int=(1 << 127) + 2)
TYPES: dict[str, tuple[PrimitiveType, str, Any, Any]] = {
    "decimal": (DecimalType(9, 2), "decimal(9,2)", Decimal("1.50"), Decimal("-2.25")),
    "uuid": (UUIDType(), "uuid", ONE, OTHER),
    "fixed": (FixedType(3), "fixed[3]", b"abc", b"\x00\xff\x01"),
}


@pytest.mark.parametrize(("kind", "written", "one", "other"), TYPES.values(), ids=TYPES)
def test_two_partition_fields_of_one_named_type_are_read(
    kind: PrimitiveType, written: str, one: Any, other: Any, tmp_path: Path
) -> None:
    id_only = Schema(NestedField(1, "id", LongType()))
    table = SmallIceberg(tmp_path, id_only)
    table.spec = Spec(1, ((1000, "2", "identity", written), (1001, "3", "identity", written)))
    columns = (NestedField(2, "a", kind), NestedField(3, "b", kind))
    # Files of a migrated table lack the columns that their partitions have (ICE-6.13).
    path, size = table.write([{"id": 7}], "avro")
    table.evolve(Schema(*id_only.fields, *columns))
    values = tuple(each.bytes if isinstance(each, UUID) else each for each in (one, other))
    table.add("append", Entry(path, DATA, "avro", 1, size, 1, values), {})

    found = read_changes(table.config(), mode="snapshot").read_all()

    assert found.to_pylist() == [{"id": 7, "a": one, "b": other}]
