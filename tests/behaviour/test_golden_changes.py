"""Every window over the golden tables gives the changes that the engine says, in every mode."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from golden_iceberg import READABLE, expected, fits, golden
from golden_questions import question
from tidegate import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KINDS = ["_change_type", "_change_ordinal", "_commit_snapshot_id"]


def _windows(kind: str, quick: int) -> list[Any]:
    """All windows of a kind; of each case so many first ones are asked by every run."""
    return [
        question(case, number, window, slow=number >= quick)
        for case in READABLE
        for number, window in enumerate(expected(case)["expect"].get(kind, []))
    ]


def _changed(case: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, snapshot in enumerate(expected(case)["snapshots"]):
        if "changes" in snapshot:
            yield number, snapshot


def _in_first_window(case: str, snapshot_id: int) -> bool:
    windows = expected(case)["expect"].get("changelog", [])
    return any(snapshot_id == commit for window in windows[:1] for _, commit in window["ordinals"])


_CHANGED = {"added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files"}
"""What the summary of a commit counts that changed something; engines leave out what is 0."""


@functools.cache
def _empty(case: str) -> set[int]:
    content = golden(case).metadata.read_bytes()
    raw = json.loads(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    summaries = {step["snapshot-id"]: step.get("summary") for step in raw.get("snapshots", [])}
    return {commit for commit, said in summaries.items() if said and not _CHANGED & said.keys()}


def no_appends(case: str, window: Mapping[str, Any]) -> list[tuple[int, str]]:
    """List the commits of a window that changed rows and are no appends.

    Engines commit a delete that found no row, too; it stops nothing (ICE-3.3).
    """
    empty = _empty(case)
    return [(commit, kind) for commit, kind in window["non_append"] if commit not in empty]


APPEND = _windows("append", quick=3)
REFUSED = [
    question(case, number, window, slow=number > 0)
    for case in READABLE
    for number, window in enumerate(expected(case)["expect"].get("append", []))
    if no_appends(case, window)
]
CHANGELOG = _windows("changelog", quick=1)
COMMITS = [
    question(case, number, snapshot, slow=_in_first_window(case, snapshot["snapshot_id"]))
    for case in READABLE
    for number, snapshot in _changed(case)
]
DIFFS = _windows("diff", quick=99)
SPARK = [
    question(case, kind, kind)
    for case in READABLE
    for kind in ("changes", "net_changes", "with_updates")
    if "rows" in expected(case)["expect"].get("spark_changelog", {}).get(kind, {})
]
UPSERTS = [
    question("lineage_v3", since, int(since), rows)
    for since, rows in expected("lineage_v3")["expect"]["lineage_upserts"][
        "since_sequence_number"
    ].items()
    if int(since) <= len(expected("lineage_v3")["lineage"])
]


INSERTS, DELETES = ["INSERT", "UPDATE_AFTER"], ["DELETE", "UPDATE_BEFORE"]
"""A table with identifier fields pairs its updates by itself (ICE-3.15); the answers do not."""


def of_kind(table: pa.Table, kinds: list[str]) -> pa.Table:
    """The rows of some kinds, without the columns that a change mode adds."""
    chosen = table.filter(pc.is_in(table.column("_change_type"), pa.array(kinds)))
    return chosen.drop_columns(KINDS)


def agrees(table: pa.Table, changes: Mapping[str, Any]) -> bool:
    """Say whether the changes of one commit are the engine's."""
    assert set(table.column("_change_type").to_pylist()) <= {*INSERTS, *DELETES}
    return fits(of_kind(table, DELETES), changes["delete"]) and fits(
        of_kind(table, INSERTS), changes["insert"]
    )


def unpaired(table: pa.Table) -> pa.Table:
    """The same changes with every update as a delete and an insert."""
    kinds = table.column("_change_type")
    inserts = pc.is_in(kinds, pa.array(INSERTS))
    at = table.schema.get_field_index("_change_type")
    return table.set_column(at, "_change_type", pc.if_else(inserts, "INSERT", "DELETE"))


@pytest.mark.parametrize(("case", "window"), APPEND)
def test_append_window_has_the_rows_of_the_engine(case: str, window: Mapping[str, Any]) -> None:
    read = {"on_non_append": "skip"} if no_appends(case, window) else {}

    table = golden(case).changes(
        "append", window["start_exclusive"], window["end_inclusive"], read=read
    )

    assert fits(table, window)


@pytest.mark.parametrize(("case", "window"), REFUSED)
def test_append_window_by_default_names_the_first_commits_that_are_no_appends(
    case: str, window: Mapping[str, Any]
) -> None:
    with pytest.raises(errors.NonAppendSnapshot) as refused:
        golden(case).changes("append", window["start_exclusive"], window["end_inclusive"])

    expected = list(no_appends(case, window))
    for snapshot_id, kind in expected[:10]:
        assert f"{snapshot_id} ({kind}: " in refused.value.snapshots
    # A window may have hundreds.
    assert refused.value.snapshots.endswith(f"and {len(expected) - 10} more") == (
        len(expected) > 10
    )
    assert "None" not in refused.value.snapshots


@pytest.mark.parametrize(("case", "window"), CHANGELOG)
def test_changelog_window_has_each_commits_changes_under_its_ordinal(
    case: str, window: Mapping[str, Any]
) -> None:
    table = golden(case).changes("changelog", window["start_exclusive"], window["end_inclusive"])

    ordinals = {snapshot_id: ordinal for ordinal, snapshot_id in window["ordinals"]}
    found = {
        (row["_commit_snapshot_id"], row["_change_ordinal"])
        for row in table.select(KINDS[1:]).group_by(KINDS[1:]).aggregate([]).to_pylist()
    }
    assert found <= set(ordinals.items())
    for _, snapshot in _changed(case):
        snapshot_id = snapshot["snapshot_id"]
        if snapshot_id in ordinals and "error" not in snapshot["changes"]:
            own = table.filter(pc.equal(table.column("_commit_snapshot_id"), snapshot_id))
            assert agrees(own, snapshot["changes"])


@pytest.mark.parametrize(("case", "snapshot"), COMMITS)
def test_changelog_of_one_commit_has_the_changes_of_the_engine(
    case: str, snapshot: Mapping[str, Any]
) -> None:
    start, end = snapshot["parent_id"], snapshot["snapshot_id"]
    if "error" in snapshot["changes"]:
        with pytest.raises(errors.ChangelogParentMissing):
            golden(case).changes("changelog", None, end)
        return

    table = golden(case).changes("changelog", start, end)

    assert table.column_names[-3:] == KINDS
    assert agrees(table, snapshot["changes"])


@pytest.mark.parametrize(("case", "pair"), DIFFS)
def test_snapshot_diff_of_any_two_snapshots_is_the_engines(
    case: str, pair: Mapping[str, Any]
) -> None:
    table = golden(case).changes("snapshot_diff", pair["from"], pair["to"])

    assert agrees(table, pair)
    assert set(table.column("_change_ordinal").to_pylist()) <= {0}
    assert set(table.column("_commit_snapshot_id").to_pylist()) <= {pair["to"]}


@pytest.mark.parametrize(("case", "kind"), SPARK)
def test_changelog_is_sparks_own_where_spark_can_make_one(case: str, kind: str) -> None:
    spark = expected(case)["expect"]["spark_changelog"]
    bounds = (spark["start_exclusive"], spark["end_inclusive"])
    read = {
        "changes": {"identifier_columns": []},
        "net_changes": {"net_changes": True},
        "with_updates": {"identifier_columns": expected(case)["identifier_columns"]},
    }[kind]

    table = golden(case).changes("changelog", *bounds, read=read)

    if kind == "net_changes":
        # Spark keeps the commit of each change; ours are of the window (ICE-3.23).
        rows = [row[:-2] for row in spark[kind]["rows"]]
        assert fits(table.drop_columns(KINDS[1:]), {"rows": rows})
    else:
        assert table.column_names == spark[kind]["columns"]
        assert fits(table, spark[kind])


@pytest.mark.parametrize(("case", "since", "rows"), UPSERTS)
def test_lineage_upserts_after_a_snapshot_are_those_of_its_sequence_number(
    case: str, since: int, rows: list[Any]
) -> None:
    answer = expected(case)
    start = next(
        (item["snapshot_id"] for item in answer["snapshots"] if item["sequence_number"] == since),
        None,
    )

    table = golden(case).changes("lineage_upserts", start)

    assert set(table.column("_change_type").to_pylist()) <= {"UPSERT"}
    table = table.select(answer["expect"]["lineage_upserts"]["columns"])
    assert fits(table, {"rows": rows})


@pytest.mark.parametrize("case", ["mor_v2", "cow_v2", "eq_pos_mix_v2", "cow_v1", "lineage_v3"])
def test_changes_of_single_commits_are_put_in_order_by_the_columns_of_their_commit(
    case: str,
) -> None:
    content = json.loads(golden(case).metadata.read_bytes())
    commits = {step["snapshot-id"]: step for step in content["snapshots"]}
    lineage = expected(case)["lineage"]
    own = golden(case).changes("snapshot").column_names
    columns = [*own, *KINDS, "_commit_time", "_commit_sequence_number"]

    found = [
        golden(case).changes("changelog", start, end, columns).to_pylist()
        for start, end in itertools.pairwise([None, *lineage])
    ]

    assert any(found)
    for row in itertools.chain(*found):
        commit = commits[row["_commit_snapshot_id"]]
        assert row["_change_ordinal"] == 0
        assert row["_commit_sequence_number"] == commit.get("sequence-number")
        assert row["_commit_time"].timestamp() * 1000 == commit["timestamp-ms"]
    if content["format-version"] > 1:
        # Whatever order the windows are read in.
        rows = sorted(itertools.chain(*reversed(found)), key=itemgetter("_commit_sequence_number"))
        ids = [row["_commit_snapshot_id"] for row in rows]
        assert [commit for commit, _ in itertools.groupby(ids)] == [
            commit for commit in lineage if commit in set(ids)
        ]
