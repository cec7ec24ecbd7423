"""A filter finds columns as `read.columns` does, whether columns are chosen or not (ICE-6.17)."""

from __future__ import annotations

import pytest

from golden_iceberg import golden
from tidegate.errors import PredicateInvalid

CASE = "sorted_bounds_v2"


@pytest.mark.parametrize("columns", [None, ["id"], ["ID"]], ids=["all", "as spelled", "otherwise"])
@pytest.mark.parametrize("mode", ["snapshot", "append"])
def test_filter_in_another_case_reads_the_same_rows(columns: list[str] | None, mode: str) -> None:
    def ids(text: str) -> list[int]:
        read = {"filter": text} | ({"on_non_append": "skip"} if mode == "append" else {})
        table = golden(CASE).changes(mode, columns=columns, read=read)
        return sorted(table.column(columns[0] if columns else "id").to_pylist())

    assert ids("Id > 100 and ID <= 300") == ids("id > 100 and id <= 300") != []


def test_filter_in_another_case_is_refused_where_case_counts() -> None:
    with pytest.raises(PredicateInvalid, match="no column 'ID'"):
        golden(CASE).changes("snapshot", case_sensitive=True, read={"filter": "ID > 3"})
