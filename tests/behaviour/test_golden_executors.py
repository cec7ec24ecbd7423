"""Golden tables come out of both executors, split into many pieces, as the engine reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import READABLE, bag, expected, fits, golden
from golden_questions import question

if TYPE_CHECKING:
    import pyarrow as pa

    from staged_reads import StagedReads

MANY_ROWS = 10_000
IN_SPARK = [
    "cow_v3",
    "eq_partition_v2",
    "flink_upsert_v2",
    "lineage_v3",
    "mixed_formats_v2",
    "mor_v2",
    "mor_v3",
    "types_parquet_v2",
]
"""One of each kind of delete and of file; a Spark job costs a hundred times a local read."""


def columns(case: str) -> list[str]:
    return [
        name if isinstance(name, str) else name[0] for name in expected(case)["head"]["columns"]
    ]


def split_for(case: str) -> dict[str, Any]:
    """Cut small tables into pieces of three rows, larger ones into some twenty."""
    rows = expected(case)["head"]["row_count"]
    if rows >= MANY_ROWS:
        return {"max_rows": rows // 4}
    return {"target_size": "64KiB", "open_cost": "1KiB", "max_rows": max(3, rows // 20)}


def start_of(case: str) -> Any:
    """From the oldest snapshot on; after it where the state before it was expired."""
    found = expected(case)
    oldest = found["lineage"][0]
    parents = {item["snapshot_id"]: item["parent_id"] for item in found["snapshots"]}
    return "earliest" if parents[oldest] is None else {"after": oldest}


def read_head(reads: StagedReads, case: str) -> pa.Table:
    source = golden(case).config(start="full", split=split_for(case))
    return reads.table(source)


def read_changelog(reads: StagedReads, case: str) -> pa.Table:
    listed = [*columns(case), "_change_type", "_commit_snapshot_id"]
    read = {"mode": "changelog", "columns": listed}
    source = golden(case).config(read=read, start=start_of(case), split=split_for(case))
    return reads.table(source)


def check_changelog(case: str, table: pa.Table) -> None:
    """Whichever way it is read, a changelog has the same rows."""
    start = start_of(case)
    after = None if start == "earliest" else start["after"]
    listed = [*columns(case), "_change_type", "_commit_snapshot_id"]
    whole = golden(case).changes("changelog", after, columns=listed)
    assert bag(table) == bag(whole.select(table.column_names))


HEADS = [case for case in READABLE if expected(case)["head"].get("columns")]
SMALL = [case for case in HEADS if expected(case)["head"]["row_count"] < MANY_ROWS]


@pytest.mark.parametrize("case", [question(case) for case in HEADS])
def test_head_staged_by_threads_in_tiny_pieces_has_the_engines_rows(
    case: str, local: StagedReads
) -> None:
    table = read_head(local, case)

    assert fits(table, expected(case)["head"])


@pytest.mark.parametrize("case", [question(case, slow=case not in IN_SPARK) for case in SMALL])
def test_changelog_staged_by_threads_in_tiny_pieces_is_the_one_of_the_library(
    case: str, local: StagedReads
) -> None:
    table = read_changelog(local, case)

    check_changelog(case, table)


@pytest.mark.spark
@pytest.mark.parametrize("case", [question(case, slow=case not in IN_SPARK) for case in SMALL])
def test_head_and_changelog_staged_by_spark_tasks_have_the_engines_rows(
    case: str, in_spark: StagedReads
) -> None:
    assert fits(read_head(in_spark, case), expected(case)["head"])
    check_changelog(case, read_changelog(in_spark, case))
