"""A table's schemas and partitionings say which of its deletes apply where."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
)
from pyiceberg.types import (
    DateType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)

from tidegate.source.iceberg.deletes.rules import DeleteRules, KeyField, delete_rules


def _rules(
    schemas: list[Schema], *specs: list[tuple[int, Transform[Any, Any]]], path_match: str = "exact"
) -> DeleteRules:
    metadata = TableMetadataV2(
        location="s3://lake/orders",
        last_column_id=99,
        schemas=[Schema(*schema.fields, schema_id=number) for number, schema in enumerate(schemas)],
        current_schema_id=len(schemas) - 1,
        partition_specs=[
            PartitionSpec(
                *(
                    PartitionField(source, 1000 + place, transform, f"p{place}")
                    for place, (source, transform) in enumerate(fields)
                ),
                spec_id=number,
            )
            for number, fields in enumerate(specs)
        ],
        last_partition_id=1010,
    )
    return delete_rules("lake.orders", metadata, path_match)


def _one(field_id: int, kind: Any, *, required: bool = False) -> Schema:
    return Schema(NestedField(field_id, f"c{field_id}", kind, required=required))


def test_spec_without_a_field_that_counts_is_global() -> None:
    """ICE-4.7: without fields, or with void ones only."""
    rules = _rules(
        [_one(1, LongType())],
        [],
        [(1, VoidTransform())],
        [(1, VoidTransform()), (1, IdentityTransform())],
        [(1, BucketTransform(4))],
    )

    assert rules.global_specs == {0, 1}


def test_columns_of_every_schema_may_be_keys() -> None:
    """ICE-4.8: dropped ones are used on; structs, lists and maps are no keys themselves."""
    nested = StructType(NestedField(3, "inner", StringType(), required=True))
    rules = _rules([_one(1, LongType()), _one(2, nested), _one(4, ListType(5, DateType()))], [])

    assert {field_id: it.kind for field_id, it in rules.key_fields.items()} == {
        1: LongType(),
        3: StringType(),
        5: DateType(),
    }


@pytest.mark.parametrize(
    ("before", "after"), [(True, False), (False, True)], ids=["relaxed", "tightened"]
)
def test_column_is_required_only_if_it_always_was(before: bool, after: bool) -> None:
    rules = _rules([_one(1, LongType(), required=before), _one(1, LongType(), required=after)], [])

    assert not rules.key_fields[1].required


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [(True, True, True), (False, True, False), (True, False, False)],
    ids=["both", "struct-may-be-null", "field-may-be-null"],
)
def test_field_of_a_struct_has_no_null_only_if_the_struct_has_none(
    outer: bool, inner: bool, expected: bool
) -> None:
    nested = StructType(NestedField(2, "inner", LongType(), required=inner))

    found = _rules([_one(1, nested, required=outer)], []).key_fields[2]

    assert found == KeyField(LongType(), required=expected, nulls_counted=outer)


def test_element_of_a_list_is_never_certain() -> None:
    rules = _rules([_one(1, ListType(2, LongType(), element_required=True), required=True)], [])

    assert rules.key_fields[2] == KeyField(LongType(), required=False, nulls_counted=False)


@pytest.mark.parametrize(
    ("older", "newer", "compares"),
    [(IntegerType(), LongType(), True), (DateType(), TimestampType(), False)],
    ids=["int-long", "date-timestamp"],
)
def test_promoted_column_has_its_newest_type_and_one_order_if_values_compare(
    older: PrimitiveType, newer: PrimitiveType, compares: bool
) -> None:
    found = _rules([_one(1, older), _one(1, newer)], []).key_fields[1]

    assert (found.kind, found.has_one_order) == (newer, compares)


@pytest.mark.parametrize(
    ("kinds", "transform", "expected"),
    [
        ([LongType()], IdentityTransform(), LongType()),
        ([TimestampType()], DayTransform(), DateType()),
        ([StringType()], TruncateTransform(3), StringType()),
        ([StringType()], BucketTransform(4), IntegerType()),
        ([DoubleType()], IdentityTransform(), None),
        ([UUIDType()], IdentityTransform(), None),
        ([UUIDType()], BucketTransform(4), IntegerType()),
        ([LongType()], UnknownTransform("zorder"), None),
        ([DateType(), TimestampType()], IdentityTransform(), None),
    ],
    ids=str,
)
def test_partition_field_has_a_type_only_where_bounds_may_be_compared(
    kinds: list[PrimitiveType], transform: Transform[Any, Any], expected: PrimitiveType | None
) -> None:
    rules = _rules([_one(1, kind) for kind in kinds], [(1, transform)])

    assert rules.partition_types == {0: (expected,)}


def test_partition_field_of_a_column_that_no_schema_has_is_not_compared() -> None:
    assert _rules([_one(1, LongType())], [(9, IdentityTransform())]).partition_types == {0: (None,)}


@pytest.mark.parametrize(("path_match", "exact"), [("exact", True), ("scheme_insensitive", False)])
def test_paths_are_compared_as_the_pipeline_says(path_match: str, exact: bool) -> None:
    """ICE-4.14."""
    assert _rules([_one(1, LongType())], [], path_match=path_match).exact_paths is exact
