"""Tables whose records could be merged with the wrong rows are refused, and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidegate.errors import HudiPropertyUnsupported
from tidegate.source.hudi.table.merge_columns import check_merge_columns
from tidegate.source.hudi.table.merge_rules import MergeMode, MergeRules
from tidegate.source.hudi.table.properties import TableProperties

COLUMNS = pa.schema(
    {"k": pa.string(), "ts": pa.int64(), "at": pa.timestamp("us"), "x": pa.float64()}
)
STORED = {"hoodie.table.recordkey.fields": "k", "hoodie.table.ordering.fields": "ts"}
COMPUTED = STORED | {"hoodie.populate.meta.fields": "false"}
COMPLEX = COMPUTED | {"hoodie.table.keygenerator.type": "COMPLEX"}


def check(raw: dict[str, str], mode: MergeMode = MergeMode.EVENT_TIME, **more: Any) -> None:
    table = TableProperties("t", {"hoodie.table.version": "9"} | raw)
    check_merge_columns(table, more.get("columns", COLUMNS), MergeRules(mode))


@pytest.mark.parametrize(
    "raw",
    [
        STORED,
        COMPUTED,
        STORED | {"hoodie.table.recordkey.fields": "st.a"},
        COMPLEX | {"hoodie.table.recordkey.fields": "k,ts"},
        COMPLEX | {"hoodie.table.version": "6"},
        STORED | {"hoodie.table.recordkey.fields": "x"},
    ],
)
def test_keys_that_are_stored_or_have_one_spelling_are_merged(raw: dict[str, str]) -> None:
    check(raw)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (STORED | {"hoodie.table.ordering.fields": "st.ts"}, "ordering.fields"),
        (COMPUTED | {"hoodie.table.recordkey.fields": "st.a"}, "recordkey.fields"),
        (COMPUTED | {"hoodie.table.recordkey.fields": "at"}, "timestamp"),
        (COMPUTED | {"hoodie.table.recordkey.fields": "k,x"}, "double"),
        (COMPLEX, "several columns"),
    ],
)
def test_keys_and_orders_that_cannot_be_told_are_refused(raw: dict[str, str], named: str) -> None:
    with pytest.raises(HudiPropertyUnsupported, match=named):
        check(raw)


def test_order_does_not_matter_where_the_later_record_wins() -> None:
    check(STORED | {"hoodie.table.ordering.fields": "st.ts"}, MergeMode.COMMIT_TIME)


def test_table_without_any_write_is_not_refused() -> None:
    check(STORED, columns=pa.schema({"_hoodie_record_key": pa.string()}))
