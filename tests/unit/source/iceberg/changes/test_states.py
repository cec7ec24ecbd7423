"""States and their differences are those of the engine, and reading less changes neither."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import ROOT, answers, golden
from iceberg_states import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidegate.model.file_slice import Delta
    from tidegate.source.iceberg.changes.states import State

CONTENT = {
    "positions": "POSITION_DELETES",
    "vector": "POSITION_DELETES",
    "keys": "EQUALITY_DELETES",
}
LISTED_IN_PART = {"small_files_v2"}
"""The answers name the first tasks only."""
NOT_COMPARED = {"eq_uuid_high_bit_v2", "variant_v3"}
"""The engine rules a delete out that applies (ICE-4.9); the table is refused (ICE-1.3)."""
WITH_DELETES = [
    "all_deleted_v2",
    "compaction_v3",
    "cow_v2",
    "eq_partition_v2",
    "eq_pos_mix_v2",
    "flink_upsert_v2",
    "mor_partition_scope_v2",
    "mor_v3",
    "partition_evolution_v2",
    "rewrite_manifests_v2",
    "rewrite_position_deletes_v2",
    "rollback_v2",
    "same_commit_v2",
    "upgrade_v1_v2_v3",
]


def _with_tasks() -> list[str]:
    cases = (path.parent.name for path in sorted(ROOT.glob("*/answers.json")))
    return [case for case in cases if answers(case).get("head", {}).get("tasks")]


def _as_tasks(case: str, state: State) -> list[tuple[Any, ...]]:
    relative = golden(case).relative
    return sorted(
        (
            relative(file.entry.path),
            file.entry.rows,
            file.entry.sequence_number,
            file.entry.file_sequence_number,
            file.entry.spec_id,
            file.entry.first_row_id,
            sorted(
                [relative(it.path), CONTENT[it.kind], it.file_format.upper(), str(it.offset)]
                for it in file.deletes
            ),
        )
        for file in state.files
    )


def _expected(task: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        task["file"],
        task["records"],
        task["data_sequence_number"],
        task["file_sequence_number"],
        task["spec_id"],
        task["first_row_id"],
        sorted(
            [it["file"], it["content"], it["format"], str(it["content_offset"])]
            for it in task["deletes"]
        ),
    )


@pytest.mark.parametrize(
    "case", [case for case in _with_tasks() if case not in LISTED_IN_PART | NOT_COMPARED]
)
def test_state_of_a_golden_table_has_the_files_and_deletes_of_the_engine(case: str) -> None:
    table = opened(golden(case))

    state = table.states.state(table.snapshot(answers(case)["current_snapshot_id"]))

    tasks = answers(case)["head"]["tasks"]
    assert _as_tasks(case, state) == sorted(_expected(task) for task in tasks)


def test_uuid_with_the_highest_bit_is_not_pruned() -> None:
    # The engine compares uuids as signed and rules the delete out; by ICE-4.9 it applies.
    table = opened(golden("eq_uuid_high_bit_v2"))

    state = table.states.state(table.snapshot(answers("eq_uuid_high_bit_v2")["lineage"][-1]))

    assert [len(file.deletes) for file in state.files] == [1]


def _keys(deletes: Iterable[Delta] | None) -> Any:
    return None if deletes is None else frozenset(it.key for it in deletes)


def _content(state: State | None) -> dict[Any, Any]:
    files = state.files if state else ()
    return {(it.entry.path, it.entry.sequence_number): _keys(it.deletes) for it in files}


@pytest.mark.parametrize("case", WITH_DELETES)
def test_difference_of_any_two_snapshots_is_that_of_their_states(case: str) -> None:
    table = opened(golden(case))
    snapshots = table.table.metadata.snapshots
    states = {it.snapshot_id: _content(table.states.state(it)) for it in snapshots}
    fresh = opened(golden(case)).states

    for before, after in product([None, *snapshots], snapshots):
        old = states[before.snapshot_id] if before else {}
        new = states[after.snapshot_id]
        found = fresh.difference(before, after).files

        changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
        assert {
            ((it.entry.path, it.entry.sequence_number), _keys(it.before), _keys(it.after))
            for it in found
        } == {(key, old.get(key), new.get(key)) for key in changed}
        assert len(found) == len(changed)


@pytest.mark.parametrize("case", WITH_DELETES)
def test_files_of_a_commit_that_changes_rows_are_listed(case: str) -> None:
    table = opened(golden(case))

    for step in answers(case)["snapshots"]:
        snapshot = table.snapshot(step["snapshot_id"])
        parent = table.table.metadata.snapshot_by_id(snapshot.parent_snapshot_id or 0)
        rows = sum(step["changes"][side]["row_count"] for side in ("insert", "delete"))
        assert table.states.difference(parent, snapshot).files or not rows


def test_difference_that_only_adds_files_reads_no_old_manifest() -> None:
    table = opened(golden("append_v2"))
    snapshots = table.table.metadata.snapshots

    difference = table.states.difference(snapshots[-2], snapshots[-1])

    assert difference.files
    assert all(it.before is None and it.after == () for it in difference.files)
    assert list(difference.tally.values()) == [len(snapshots) - 1]


def test_filter_rules_out_files_of_other_partitions_and_counts_them() -> None:
    table = opened(golden("eq_partition_v2"))
    head = table.snapshot(answers("eq_partition_v2")["lineage"][-1])
    filtered = opened(golden("eq_partition_v2"), "p = 'no such partition'")

    assert table.states.state(head).files
    state = filtered.states.state(head)

    assert not state.files
    assert sum(state.tally.values()) > 0
