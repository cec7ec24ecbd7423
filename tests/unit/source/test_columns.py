"""The columns to read are those that are asked for, once each, and what a filter needs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ColumnMissing
from tidegate.source.columns import column_names, select_columns

KNOWN = ["id", "v", "at", "w"]
CHOICE = st.lists(st.sampled_from(KNOWN), max_size=5)


@given(columns=CHOICE, extra=CHOICE)
def test_chosen_columns_come_in_their_order_and_then_the_extra_ones(
    columns: list[str], extra: list[str]
) -> None:
    found = column_names(KNOWN, columns, extra, "lake.t")

    assert sorted(found) == sorted({*columns, *extra})
    assert found == sorted(found, key=[*columns, *extra].index)


def test_without_a_choice_all_columns_come_in_the_order_of_the_table() -> None:
    assert column_names(KNOWN, None, ["v"], "lake.t") == KNOWN


@pytest.mark.parametrize(("columns", "extra"), [(["ID"], []), (["id"], ["nothing"])])
def test_column_that_is_not_there_is_named_with_those_that_are(
    columns: list[str], extra: list[str]
) -> None:
    with pytest.raises(ColumnMissing, match="id, v, at, w"):
        column_names(KNOWN, columns, extra, "lake.t")


def test_selected_columns_keep_type_and_metadata() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"k": "1"}), ("v", pa.string())])

    found = select_columns(schema, ["v", "id"], [], "lake.t")

    assert found.equals(pa.schema([schema.field("v"), schema.field("id")]), check_metadata=True)
