"""Columns of schemas and files find each other by field id; partition values survive the plan."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tidegate.physical.protocol import FIELD_ID
from tidegate.source.iceberg.columns.columns import (
    IdentityValues,
    constants,
    found_by_id,
    found_by_name,
    has_field_ids,
    wanted_columns,
)

if TYPE_CHECKING:
    from tidegate.source.column_kernels import Found, Wanted

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "at", StructType(NestedField(3, "day", DateType()))),
    NestedField(4, "tags", ListType(5, StringType(), element_required=False)),
    NestedField(6, "more", MapType(7, StringType(), 8, BinaryType(), value_required=False)),
    NestedField(9, "added", StringType(), initial_default="new"),
)


def _ids(columns: Any) -> Any:
    """Return the keys of columns, each with those of its children."""
    return {it.key: _ids(it.children) for it in columns}


EVERY_ID = {1: {}, 2: {3: {}}, 4: {5: {}}, 6: {7: {}, 8: {}}, 9: {}}


def test_wanted_columns_have_the_ids_of_the_schema_at_any_depth() -> None:
    found = wanted_columns(SCHEMA)

    assert _ids(found) == EVERY_ID
    assert [it.name for it in found] == ["id", "at", "tags", "more", "added"]
    assert [it.required for it in found] == [True, False, False, False, False]
    assert found[-1].default == "new"


def test_wanted_types_are_plain_ones_that_files_come_as() -> None:
    assert [it.type for it in wanted_columns(SCHEMA)] == [
        pa.int64(),
        pa.struct([("day", pa.date32())]),
        pa.list_(pa.field("element", pa.string())),
        pa.map_(pa.string(), pa.binary()),
        pa.string(),
    ]


def _file(names: dict[str, str] | None = None) -> pa.Schema:
    """Return the columns of a file that the engine's library would write, perhaps renamed."""
    schema = schema_to_pyarrow(SCHEMA)
    return pa.schema(
        [field.with_name((names or {}).get(field.name, field.name)) for field in schema]
    )


def _without_ids(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_without_ids(child) for child in kind])
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = pa.list_(pa.field("item", kind.value_type))
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, kind.item_type)
    return pa.field(field.name, kind)


def test_columns_of_a_file_with_ids_are_found_under_any_name() -> None:
    """ICE-6.12."""
    file = _file({"id": "renamed", "more": "id"})

    assert has_field_ids(file)
    assert _ids(found_by_id(file)) == EVERY_ID


def test_columns_of_a_file_without_ids_are_found_by_the_mapping() -> None:
    """ICE-6.14; children of lists and maps have other names in files than in mappings."""
    file = pa.schema([_without_ids(field) for field in _file()])
    mapping = list(create_mapping_from_schema(SCHEMA).root)

    assert not has_field_ids(file)
    assert _ids(found_by_name(file, mapping)) == EVERY_ID


def test_column_that_the_mapping_has_not_is_no_column_of_the_table() -> None:
    file = pa.schema([("id", pa.int64()), ("stranger", pa.struct([("day", pa.date32())]))])

    mapping = list(create_mapping_from_schema(SCHEMA).root)

    assert [it.key for it in found_by_name(file, mapping)] == [1, None]
    assert [it.key for it in found_by_name(file, mapping)[1].children] == [None]


def test_field_of_another_struct_is_not_taken_for_one_of_the_same_name() -> None:
    mapping = list(create_mapping_from_schema(SCHEMA).root)

    assert _keys(found_by_name(pa.schema([("day", pa.date32())]), mapping)) == [None]


def _keys(found: tuple[Found, ...]) -> list[Any]:
    return [it.key for it in found]


def test_field_id_zero_is_one() -> None:
    field = pa.field("c", pa.int64(), metadata={FIELD_ID: b"0"})

    assert has_field_ids(pa.schema([field]))
    assert _keys(found_by_id(pa.schema([field]))) == [0]


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    BooleanType(): st.booleans(),
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    FloatType(): st.floats(width=32),
    DoubleType(): st.floats(),
    DecimalType(12, 3): st.integers(-(10**11), 10**11).map(lambda it: Decimal(it).scaleb(-3)),
    StringType(): st.text(max_size=4),
    BinaryType(): st.binary(max_size=4),
    FixedType(3): st.binary(min_size=3, max_size=3),
    UUIDType(): st.uuids(),
    DateType(): st.integers(-800_000, 2_900_000),
    TimeType(): st.integers(0, 86_399_999_999),
    TimestampType(): st.integers(-(2**62), 2**62),
    TimestamptzType(): st.integers(-(2**62), 2**62),
}
"""What manifests hold of a type: times and dates are counts since 1970."""


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_identity_value_is_the_same_in_the_plan_and_in_a_column(
    kind: Any, data: st.DataObject
) -> None:
    """ICE-6.13."""
    value = data.draw(st.none() | VALUES[kind])
    schema = Schema(NestedField(5, "c", kind))
    spec = PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "c"))

    planned = json.loads(json.dumps(IdentityValues({0: spec}).of(0, (value,))))
    scalar = constants(planned, wanted_columns(schema))[5]

    assert scalar.type == wanted_columns(schema)[0].type
    assert repr(_stored(scalar)) == repr(value)


def _stored(scalar: pa.Scalar) -> Any:
    """Return a scalar as a manifest has its value."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_temporal(kind):
        return scalar.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).as_py()
    found = scalar.as_py()
    return UUID(bytes=found) if isinstance(kind, pa.UuidType) and type(found) is bytes else found


def test_values_are_those_of_identity_fields_at_their_place() -> None:
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "b"),
        PartitionField(9, 1001, IdentityTransform(), "a"),
        PartitionField(3, 1002, IdentityTransform(), "d"),
    )
    values = IdentityValues({0: PartitionSpec(), 7: spec})

    assert values.of(7, (2, "new", 11)) == {"9": "new", "3": 11}
    assert values.of(7, (2, "new")) == {"9": "new"}
    assert values.of(0, ()) == {}


def test_constant_of_a_field_inside_a_struct_has_its_type() -> None:
    found = constants({"3": 11}, wanted_columns(SCHEMA))

    assert found == {3: pa.scalar(11, pa.int32()).cast(pa.date32())}


def test_constant_of_a_column_that_is_not_read_is_left_out() -> None:
    chosen: tuple[Wanted, ...] = wanted_columns(SCHEMA)[:1]

    assert constants({"3": 11, "1": 5}, chosen) == {1: pa.scalar(5)}
