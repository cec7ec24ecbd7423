"""The stream of changes is the same bag of rows, whatever is spilled and however it is cut."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden_iceberg import answers, bag, golden
from tidegate import read_changes
from tidegate.config import read_source
from tidegate.read import exchange

if TYPE_CHECKING:
    from collections import Counter

CASES = {
    "cow_v3": {"identifier_columns": ["id"]},
    "compaction_v2": {},
    "duplicates_v2": {},
    "eq_pos_mix_v2": {},
    "identifier_fields_v2": {},
    "lineage_v3": {"identifier_columns": ["id"]},
}


def changes(case: str, **keys: Any) -> Counter[str]:
    read = {**CASES[case], "verify_changelog": True}
    return bag(golden(case).changes("changelog", read=read, **keys))


@cache
def in_memory(case: str) -> Counter[str]:
    return changes(case)


@settings(max_examples=settings.default.max_examples // 5)
@given(
    case=st.sampled_from(sorted(CASES)),
    target_size=st.integers(1, 4096),
    max_rows=st.integers(1, 20),
    round_bytes=st.sampled_from([1, 300, 1 << 20]),
)
def test_stream_with_any_limits_gives_the_same_rows(
    case: str, target_size: int, max_rows: int, round_bytes: int
) -> None:
    split = {"target_size": target_size, "open_cost": 1, "max_rows": max_rows}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "_ROUND_BYTES", round_bytes)
        found = changes(case, split=split)

    assert found == in_memory(case)


def test_difference_against_history_undoes_the_difference_along_it() -> None:
    first, last = answers("cow_v2")["lineage"][0], answers("cow_v2")["lineage"][-1]

    forth = golden("cow_v2").changes("snapshot_diff", first, last)
    back = golden("cow_v2").changes("snapshot_diff", last, first)

    swapped = {"INSERT": "DELETE", "DELETE": "INSERT"}
    drop = ["_commit_snapshot_id"]
    rows = [
        sorted(
            (*(item for name, item in row.items() if name != "_change_type"), kind(row))
            for row in table.drop_columns(drop).to_pylist()
        )
        for table, kind in (
            (forth, lambda row: row["_change_type"]),
            (back, lambda row: swapped[row["_change_type"]]),
        )
    ]
    assert rows[0] == rows[1]
    assert rows[0]


def test_pipeline_of_another_mode_can_be_looked_at_as_a_changelog() -> None:
    read = {"mode": "append", "on_non_append": "skip", "columns": ["id", "_file"]}
    source = read_source(golden("cow_v2").config(read=read))

    table = read_changes(source, mode="changelog").read_all()
    whole = read_changes(source, mode="snapshot").read_all()

    kinds = ["_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert table.column_names == ["id", "_file", *kinds]
    assert "DELETE" in table.column("_change_type").to_pylist()
    assert whole.column_names == ["id", "_file"]
