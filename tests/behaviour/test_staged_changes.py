"""Changes come out of plans as the engine says, however commits are cut and whoever stages them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from golden_iceberg import bag, expected, fits, golden
from tidegate.model.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from staged_reads import StagedReads

QUICK = ["compaction_v2", "cow_v3", "duplicates_v2", "flink_upsert_v2", "identifier_fields_v2"]
CASES = [
    *QUICK,
    *(
        pytest.param(case, marks=pytest.mark.slow)
        for case in (
            "compaction_v3",
            "cow_v1",
            "cow_v2",
            "eq_pos_mix_v2",
            "eq_v2",
            "eq_v3",
            "lineage_v3",
            "mixed_formats_v2",
            "mor_v2",
            "mor_v3",
            "overwrite_v2",
            "same_commit_v2",
            "types_parquet_v2",
            "upgrade_v1_v2_v3",
        )
    ),
]
NEVER_BOTH_KINDS = {"eq_v2", "eq_v3"}
"""Tables each of whose commits only adds rows or only removes some."""
IN_SPARK = ["flink_upsert_v2", "cow_v3", "compaction_v2"]
IN_MEMORY = {"max_rows": 1000}
EXCHANGED = {"target_size": 2048, "open_cost": 1, "max_rows": 2}
"""So small that each commit with rows of both kinds goes through an exchange."""
KINDS = ["_change_type", "_change_ordinal", "_commit_snapshot_id"]
DELETES, INSERTS = ["DELETE", "UPDATE_BEFORE"], ["INSERT", "UPDATE_AFTER"]


def columns(case: str) -> list[str]:
    named = expected(case)["head"]["columns"]
    return [*(name if isinstance(name, str) else name[0] for name in named), *KINDS]


def source(case: str, split: Mapping[str, Any], **read: Any) -> dict[str, Any]:
    """All changes of a table, row kinds among the columns."""
    keys = {"mode": "changelog", "columns": columns(case), **read}
    return golden(case).config(start="earliest", read=keys, split=split)


def staged(reads: StagedReads, case: str, split: Mapping[str, Any], **read: Any) -> pa.Table:
    return reads.table(source(case, split, **read))


def commits(case: str) -> Sequence[tuple[int, Mapping[str, Any]]]:
    """What the engine says that each commit of a table changed, in the current schema."""
    ordinals = expected(case)["expect"]["changelog"][0]["ordinals"]
    changes = {item["snapshot_id"]: item["changes"] for item in expected(case)["snapshots"]}
    return [(snapshot_id, changes[snapshot_id]) for _, snapshot_id in ordinals]


def of_kind(table: pa.Table, kinds: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table.column("_change_type"), pa.array(kinds))).drop_columns(KINDS)


def assert_changes(case: str, table: pa.Table) -> None:
    """Each commit has the changes of the engine, and nothing else is there."""
    rows = 0
    for snapshot_id, changes in commits(case):
        own = table.filter(pc.equal(table.column("_commit_snapshot_id"), snapshot_id))
        assert fits(of_kind(own, DELETES), changes["delete"])
        assert fits(of_kind(own, INSERTS), changes["insert"])
        rows += own.num_rows
    assert rows == table.num_rows


@pytest.mark.parametrize("case", CASES)
def test_changes_settled_in_memory_are_the_engines(local: StagedReads, case: str) -> None:
    table = staged(local, case, IN_MEMORY)

    assert_changes(case, table)


@pytest.mark.parametrize("case", CASES)
def test_changes_settled_by_exchange_are_the_same_rows(local: StagedReads, case: str) -> None:
    splits = local.preview(source(case, EXCHANGED)).splits
    table = staged(local, case, EXCHANGED)

    exchanges = [part.exchange for split in splits for part in split.sub_splits if part.exchange]
    assert bool(exchanges) is (case not in NEVER_BOTH_KINDS)
    assert_changes(case, table)
    assert bag(table) == bag(staged(local, case, IN_MEMORY))


@pytest.mark.parametrize("case", ["cow_v3", "identifier_fields_v2"])
def test_updates_settled_by_exchange_are_paired_as_in_memory(local: StagedReads, case: str) -> None:
    key = columns(case)[0]

    exchanged = staged(local, case, EXCHANGED, identifier_columns=[key])
    in_memory = staged(local, case, IN_MEMORY, identifier_columns=[key])

    assert bag(exchanged) == bag(in_memory)
    assert "UPDATE_AFTER" in exchanged.column("_change_type").to_pylist()
    assert_changes(case, exchanged)


def test_updates_of_v3_go_through_two_exchanges(local: StagedReads) -> None:
    splits = local.preview(source("cow_v3", EXCHANGED, identifier_columns=["id"])).splits

    stages = Counter(split.stage for split in splits)
    begun = {
        part.exchange
        for split in splits
        for part in split.sub_splits
        if part.exchange and part.exchange.stage == 0
    }
    assert {exchange.stages for exchange in begun} == {2}
    assert stages[1] == stages[2] == sum(exchange.buckets for exchange in begun)
    assert all(isinstance(exchange, Exchange) for exchange in begun)


@pytest.mark.spark
@pytest.mark.parametrize("split", [IN_MEMORY, EXCHANGED], ids=["in-memory", "exchanged"])
@pytest.mark.parametrize("case", IN_SPARK)
def test_changes_staged_in_spark_are_the_same_rows(
    local: StagedReads, in_spark: StagedReads, case: str, split: Mapping[str, Any]
) -> None:
    table = staged(in_spark, case, split)

    assert_changes(case, table)
    assert bag(table) == bag(staged(local, case, split))
