"""Key columns are found in any schema, and taken out of structs of which some are NULL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from tidegate.errors import CorruptDeletes, UnsupportedFeature
from tidegate.source.iceberg.columns.columns import wanted_columns
from tidegate.source.iceberg.columns.key_columns import KeyColumns
from tidegate.source.iceberg.columns.selection import Selection

INNER = StructType(NestedField(6, "k", StringType()), NestedField(7, "x", LongType()))
OUTER = StructType(NestedField(4, "before", LongType()), NestedField(5, "inner", INNER))
OLD = Schema(
    NestedField(1, "key", IntegerType(), required=True),
    NestedField(2, "gone", StringType()),
    schema_id=0,
)
NEW = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(3, "outer", OUTER),
    NestedField(8, "ratio", DoubleType()),
    NestedField(9, "tags", ListType(10, StringType())),
    schema_id=1,
)


def _columns(*names: str) -> KeyColumns:
    chosen = Schema(*[NEW.find_field(name) for name in names], schema_id=1)
    selection = Selection(
        {
            "schema_id": 1,
            "schema": chosen.model_dump_json(),
            "schemas": [OLD.model_dump_json(), NEW.model_dump_json()],
            "columns": list(names),
            "row_kind": "INSERT",
            "name_mapping": None,
        }
    )
    return KeyColumns("lake.t", selection, wanted_columns(chosen))


def test_key_that_comes_out_is_read_once_under_its_name() -> None:
    (column,) = _columns("id").of((1,), "d")

    assert (column.name, column.hidden, column.type) == ("id", False, pa.int64())


@pytest.mark.parametrize(
    ("field_id", "kind"),
    [(1, pa.int64()), (2, pa.string()), (6, pa.string())],
    ids=["not read", "dropped", "in a struct"],
)
def test_key_that_does_not_come_out_is_hidden(field_id: int, kind: pa.DataType) -> None:
    """ICE-4.8: in the newest type that it has."""
    (column,) = _columns("ratio").of((field_id,), "d")

    assert (column.hidden, column.type) == (True, kind)
    assert not column.root.required


def test_hidden_key_never_has_the_name_of_a_column_that_comes_out() -> None:
    odd = Schema(NestedField(8, "equality key 1", DoubleType()), schema_id=1)
    columns = _columns("ratio")
    columns._names |= {wanted_columns(odd)[0].name}

    assert columns.of((1,), "d")[0].name == "equality key 1'"


def test_columns_come_once_each_in_the_order_of_their_ids() -> None:
    found = _columns("id").of((2, 1, 2), "d")

    assert [column.field_id for column in found] == [1, 2]


@given(
    st.lists(
        st.none()
        | st.fixed_dictionaries(
            {"inner": st.none() | st.fixed_dictionaries({"k": st.none() | st.text(max_size=2)})}
        )
    )
)
def test_key_below_a_null_struct_is_null(rows: list[Any]) -> None:
    (column,) = _columns("id").of((6,), "d")
    array = pa.array(rows, column.root.type)

    found = column.of(array)

    expected = [((row or {}).get("inner") or {}).get("k") for row in rows]
    assert found.to_pylist() == expected


def test_way_to_a_key_has_nothing_beside_it() -> None:
    (column,) = _columns("id").of((6,), "d")

    assert column.root.type == pa.struct([("inner", pa.struct([("k", pa.string())]))])


@pytest.mark.parametrize(
    ("ids", "found"),
    [((), "none"), ((99,), "99"), ((3,), "struct"), ((10,), "10")],
    ids=["none", "unknown", "struct", "in a list"],
)
def test_ids_that_are_no_key_are_corrupt(ids: tuple[int, ...], found: str) -> None:
    with pytest.raises(CorruptDeletes, match=found):
        _columns("id").of(ids, "d.parquet")


def test_floating_point_key_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"double .*d\.parquet"):
        _columns("id").of((1, 8), "d.parquet")
