"""A table whose history no longer holds the checkpoint: refused, or gone on with (ICE-2.17, 2.18).

Each table is loaded at an earlier version of its metadata, and again at a later one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from golden_iceberg import answers, golden
from golden_pipeline import NOW, GoldenPipeline, rows
from small_lake import SmallLake, load, local, publish
from tidegate.cli.app import app
from tidegate.config import OWNER_FILE
from tidegate.errors import (
    CursorExpired,
    CursorOffLineage,
    HistoryTruncated,
    IcebergSourceError,
    RefNotFound,
    SnapshotLogMissing,
    SnapshotNotFound,
    StartNotAncestor,
)
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

# The files of an expired snapshot are gone, so a checkpoint there was never read.
LATEST = {"start": "latest"}
SKIP = {"read": {"on_non_append": "skip"}}
RUN = Run("again", "cli")
FOURTH = Partition((("part", "4"),))
CHANGES = {"read": {"mode": "changelog", "columns": ["id", "v", "_change_type"]}}


def kinds(table: GoldenPipeline) -> list[WindowKind]:
    opened = open_pipeline(table.file, ledger=table.ledger)
    return [item.window.kind for item in opened.ledger.windows.all()]


def checkpoint(table: GoldenPipeline) -> int:
    state = open_pipeline(table.file, ledger=table.ledger).ledger.pipeline.find()
    assert state is not None
    assert state.checkpoint is not None
    return int(state.checkpoint.id)


def head(case: str) -> int:
    found: int = answers(case)["lineage"][-1]
    return found


LOST = {
    "rolled back": ("rollback_v2", 6, 9, {}, CursorOffLineage, "on_off_lineage: reset"),
    "branch replaced": (
        "replaced_branch_v2",
        5,
        8,
        {"branch": "b"},
        CursorOffLineage,
        "`read.mode: changelog`, and `_change_type` among `read.columns`",
    ),
    "set to another": ("set_current_v2", 8, 10, {}, CursorOffLineage, "on_off_lineage: reset"),
    "between expired": (
        "expired_middle_v2",
        2,
        7,
        {},
        HistoryTruncated,
        "on_expired_cursor: from_oldest",
    ),
    "expired": ("expired_head_v2", 3, 8, LATEST, CursorExpired, "on_expired_cursor: full_reload"),
    "expired with lineage": (
        "expired_lineage_v3",
        3,
        8,
        LATEST,
        CursorExpired,
        "on_expired_cursor: full_reload",
    ),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_lost_checkpoint_is_refused_with_its_ways_out_and_nothing_moves(
    tmp_path: Path, lost: tuple[str, int, int, dict[str, Any], type[IcebergSourceError], str]
) -> None:
    case, before, after, keys, error, way_out = lost
    table = GoldenPipeline(case, tmp_path, SKIP | keys)
    table.take(before)
    stood = table.standing()

    for _ in range(2):
        with pytest.raises(error) as refused:
            table.take(after)

    assert way_out in str(refused.value)
    assert table.standing() == stood


def test_state_of_the_checkpoint_is_told_without_an_error(tmp_path: Path) -> None:
    table = GoldenPipeline("rollback_v2", tmp_path, SKIP)
    assert table.at(4).checkpoint_state(NOW) is None
    table.take(4)

    told = [table.at(version).checkpoint_state(NOW) for version in (4, 5, 9)]
    table.take(6)
    told += [
        table.at(9).checkpoint_state(NOW),
        table.at(9, on_off_lineage="reset").checkpoint_state(NOW),
        table.at(9, branch="main", tag=None, end="nothing").checkpoint_state(NOW),
    ]

    states = [item.state for item in told if item]
    assert states == [
        "caught up",
        "in lineage",
        "in lineage",
        "off lineage",
        "off lineage",
        "unknown",
    ]
    assert [len(item.ways_out) for item in told if item] == [0, 0, 0, 1, 0, 0]
    assert told[4] is not None
    assert "begins again" in told[4].detail


def test_reset_publishes_what_a_new_pipeline_would(tmp_path: Path) -> None:
    table = GoldenPipeline("rollback_v2", tmp_path, SKIP)
    table.take(6)
    assert table.published() == rows(2, 3, 4)

    table.take(9, on_off_lineage="reset")

    assert table.published() == rows(1, 2, 3, 5, 6)
    assert kinds(table) == [WindowKind.LOAD, WindowKind.RELOAD]
    assert checkpoint(table) == head("rollback_v2")
    assert table.take(9).windows == ()


@pytest.mark.parametrize(
    ("start", "published"),
    [
        ("earliest", rows(1, 2, 3, 5, 6)),
        ({"after": 480755366994390652}, rows(5, 6)),
        ("latest_inclusive", rows(6)),
        ("latest", rows(1, 2, 3, 4)),
    ],
    ids=["earliest", "after", "latest inclusive", "latest"],
)
def test_reset_begins_where_the_pipeline_file_says(
    tmp_path: Path, start: Any, published: Any
) -> None:
    table = GoldenPipeline("rollback_v2", tmp_path, SKIP)
    # In one window with the append that it takes a row of, the delete would not be passed over.
    table.take(4, start="earliest")
    table.take(6, start="earliest")
    assert table.published() == rows(1, 2, 3, 4)

    table.take(9, on_off_lineage="reset", start=start)

    assert table.published() == published
    assert kinds(table)[-1] is WindowKind.RESTART
    assert checkpoint(table) == head("rollback_v2")


def test_rollback_without_a_commit_after_it_is_reset_to_that_state(tmp_path: Path) -> None:
    table = GoldenPipeline("rollback_v2", tmp_path, SKIP)
    table.take(6)

    table.take(7, on_off_lineage="reset")
    assert table.published() == rows(1, 2, 3)
    table.take(9)

    assert table.published() == rows(1, 2, 3, 5, 6)


def test_replay_of_a_window_that_was_reset_brings_no_partition_back_that_the_reset_did_not_know(
    tmp_path: Path,
) -> None:
    without = {"read": {**SKIP["read"], "filter": "id <> 4"}}
    table = GoldenPipeline("rollback_v2", tmp_path, without)
    table.take(6)
    table.take(9, on_off_lineage="reset")
    assert table.published() == rows(1, 2, 3, 5, 6)

    # Without the filter the first window has row 4, which the table lost by the rollback.
    pipeline = table.at(9, **SKIP)
    planned = pipeline.replay(1, RUN, NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline, now=NOW)

    assert table.published() == rows(1, 2, 3, 5, 6)
    assert [item.rows for item in pipeline.ledger.contributions.to(FOURTH)] == [1, 0]


REPLACING = {"reset", "full_reload"}


@pytest.mark.follows("CursorOffLineage", "CursorExpired", "HistoryTruncated")
@pytest.mark.parametrize("changes", [False, True], ids=["append", "changelog"])
@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_every_way_out_that_is_printed_goes_on_from_the_lost_checkpoint(
    tmp_path: Path,
    lost: tuple[str, int, int, dict[str, Any], type[IcebergSourceError], str],
    *,
    changes: bool,
) -> None:
    case, before, after, keys, error, _ = lost
    mode = CHANGES if changes else SKIP
    first = GoldenPipeline(case, tmp_path / "first", mode | keys)
    first.take(before)
    with pytest.raises(error) as refused:
        first.take(after)
    ways = re.findall(r"`source\.(\w+): (\w+)` \(", str(refused.value))
    anew = GoldenPipeline(case, tmp_path / "anew", {"start": "full"})
    anew.take(after, **{key: value for key, value in keys.items() if key == "branch"})
    assert ways
    assert changes or not {policy for _, policy in ways} & {"snapshot_diff", "lineage_upserts"}

    for key, policy in ways:
        table = GoldenPipeline(case, tmp_path / policy, mode | keys)
        table.take(before)
        with pytest.raises(error):
            table.take(after)
        table.take(after, **{key: policy})

        assert checkpoint(table) == checkpoint(anew)
        assert table.take(after, **{key: policy}).windows == ()
        if policy in REPLACING and "start" not in keys and not changes:
            assert table.published() == anew.published()


@pytest.mark.parametrize("policy", ["full_reload", "from_oldest"])
def test_expired_checkpoint_goes_on_by_its_policy(tmp_path: Path, policy: str) -> None:
    table = GoldenPipeline("expired_head_v2", tmp_path, SKIP | LATEST)
    table.take(3)

    table.take(8, on_expired_cursor=policy)

    assert table.published() == (rows(2, 3, 4, 5) if policy == "full_reload" else rows(4, 5))
    assert checkpoint(table) == head("expired_head_v2")
    assert table.take(8).windows == ()


def test_from_the_oldest_tells_the_gap_in_the_plan(tmp_path: Path) -> None:
    table = GoldenPipeline("expired_head_v2", tmp_path, SKIP | LATEST)
    table.take(3)

    scan = table.at(8, on_expired_cursor="from_oldest").looking().preview(RUN, NOW).plan

    assert scan is not None
    assert any("sequence numbers differ by 3" in note for note in scan.notes)


def test_rows_before_the_oldest_are_published_as_the_warning_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.source["on_expired_cursor"] = "from_oldest"
    ids = lake.commit({1: 1, 9: 1})[:1]
    load(lake.pipeline())
    publish(lake.pipeline())
    for _ in range(3):
        ids += lake.commit({1: 1})
    *expired, _last = [item.snapshot_id for item in lake.table.snapshots()]
    lake.table.maintenance.expire_snapshots().by_ids(expired).commit()

    load(lake.pipeline())

    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == [ids[0], ids[-1]]
    assert "differ by 3" in caplog.text
    said = "replace `source.on_expired_cursor: from_oldest` by `source.read.mode: snapshot`"
    assert said in caplog.text
    ids += lake.commit({1: 1})
    load(lake.pipeline(source={"read": {"mode": "snapshot"}, "on_expired_cursor": None}))
    publish(lake.pipeline())
    ids += lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_reload_replaces_what_was_published_across_an_expired_snapshot(tmp_path: Path) -> None:
    table = GoldenPipeline("expired_middle_v2", tmp_path)
    table.take(2)
    assert table.published() == rows(1)

    table.take(7, on_expired_cursor="full_reload")

    assert table.published() == rows(1, 2, 3, 4, 5)
    assert kinds(table) == [WindowKind.LOAD, WindowKind.RELOAD]


def test_ledger_lost_after_a_reset_is_restored(tmp_path: Path) -> None:
    table = GoldenPipeline("rollback_v2", tmp_path, SKIP)
    table.take(6)
    table.take(9, on_off_lineage="reset")
    (tmp_path / "ledger.db").unlink()

    pipeline = open_pipeline(table.file, ledger=table.ledger)
    pipeline.restore_ledger()
    publish(pipeline, now=NOW)

    assert table.published() == rows(1, 2, 3, 5, 6)
    assert kinds(table) == [WindowKind.LOAD, WindowKind.RELOAD]
    assert checkpoint(table) == head("rollback_v2")


def test_expired_checkpoint_with_its_child_kept_reads_on(tmp_path: Path) -> None:
    table = GoldenPipeline("expired_middle_v2", tmp_path, LATEST)
    table.take(3)

    table.take(7)

    assert table.published() == rows(3, 4, 5)


def test_changelog_cannot_go_on_from_an_expired_state(tmp_path: Path) -> None:
    table = GoldenPipeline("expired_middle_v2", tmp_path, CHANGES | LATEST)
    table.take(3)
    stood = table.standing()

    with pytest.raises(CursorExpired):
        table.take(7)

    assert table.standing() == stood


@pytest.mark.parametrize(
    ("case", "before", "after", "keys", "changes"),
    [
        (
            "rollback_v2",
            6,
            9,
            {"on_off_lineage": "snapshot_diff"},
            [(1, "INSERT"), (4, "DELETE"), (5, "INSERT"), (6, "INSERT")],
        ),
        (
            "rollback_v3",
            4,
            6,
            {"on_off_lineage": "snapshot_diff"},
            [(2, "DELETE"), (3, "DELETE"), (4, "INSERT")],
        ),
        (
            "expired_middle_v2",
            2,
            7,
            {"on_expired_cursor": "snapshot_diff"},
            [(2, "INSERT"), (3, "INSERT"), (4, "INSERT"), (5, "INSERT")],
        ),
    ],
    ids=["rollback", "rollback-v3", "between-expired"],
)
def test_difference_of_both_states_is_published(
    tmp_path: Path,
    case: str,
    before: int,
    after: int,
    keys: dict[str, Any],
    changes: list[tuple[int, str]],
) -> None:
    table = GoldenPipeline(case, tmp_path, CHANGES)
    table.take(before)
    first = table.published("part", "_change_type")

    table.take(after, **keys)

    found = table.published("part", "_change_type") - first
    assert sorted(found) == [(str(number), kind) for number, kind in changes]
    assert kinds(table) == [WindowKind.LOAD, WindowKind.LOAD]
    assert checkpoint(table) == head(case)


@pytest.mark.follows("CursorOffLineage")
@pytest.mark.parametrize("column", ["_commit_sequence_number", "_commit_time"])
def test_difference_that_would_sort_before_what_it_undoes_waits_for_the_next_commit(
    tmp_path: Path, column: str
) -> None:
    lineage = answers("mor_v3")["lineage"]
    read = {"mode": "changelog", "columns": ["id", "v", "_change_type", column]}
    table = GoldenPipeline("mor_v3", tmp_path, {"read": read, "start": "full"})
    keys = {"on_off_lineage": "snapshot_diff"}
    ahead, back = lineage[-1], lineage[3]
    table.take(8, metadata=str(history_at(table, 8, lineage[4])))
    stood = table.standing()

    for _ in range(2):
        with pytest.raises(CursorOffLineage, match=f"the `{column}` of a commit that is older"):
            table.take(8, metadata=str(history_at(table, 8, back)), **keys)

    told = table.at(8, metadata=str(history_at(table, 8, back)), **keys).checkpoint_state(NOW)
    assert told is not None
    assert "Load again after the table's next commit" in told.detail
    assert table.standing() == stood
    table.take(8, metadata=str(history_at(table, 8, ahead)), **keys)
    assert folded(table, column) == engines_state("mor_v3", ahead)

    table.take(8, metadata=str(history_at(table, 8, back)), on_off_lineage="reset")
    assert folded(table, column) == engines_state("mor_v3", back)


def folded(table: GoldenPipeline, column: str) -> Counter[tuple[Any, ...]]:
    """Fold the published changes in the order of a column, as the docs say."""
    rows = sorted(
        table.published("_change_type", column, "part", "v").elements(),
        key=lambda row: (row[1], row[0] in {"INSERT", "UPDATE_AFTER"}),
    )
    state = Counter[tuple[Any, ...]]()
    for kind, _, *row in rows:
        state[tuple(row)] += 1 if kind in {"INSERT", "UPDATE_AFTER"} else -1
    return +state


@pytest.mark.parametrize(
    "split",
    [{}, {"target_size": 2048, "open_cost": 1, "max_rows": 8}],
    ids=["in-memory", "exchanged"],
)
def test_rollback_of_deletion_vectors_is_published_as_the_difference_of_the_engines_states(
    tmp_path: Path, split: dict[str, int]
) -> None:
    lineage = answers("mor_v3")["lineage"]
    columns = ["id", "v", "_change_type", "_commit_snapshot_id"]
    read = {"mode": "snapshot_diff", "columns": columns}
    table = GoldenPipeline("mor_v3", tmp_path, {"read": read, "start": "full", "split": split})
    head, back = lineage[-1], lineage[3]
    table.take(8, metadata=str(history_at(table, 8)))

    # After the update, before vectors were replaced and merged.
    rollback = str(history_at(table, 8, back))
    table.take(8, metadata=rollback)

    loaded, now = engines_state("mor_v3", head), engines_state("mor_v3", back)
    expected = Counter({("INSERT", head, *row): count for row, count in loaded.items()})
    for kind, changed in (("DELETE", loaded - now), ("INSERT", now - loaded)):
        expected += Counter({(kind, back, *row): count for row, count in changed.items()})
    assert table.published("_change_type", "_commit_snapshot_id", "part", "v") == expected
    assert {kind for kind, commit, *_ in expected if commit == back} == {"DELETE", "INSERT"}
    assert checkpoint(table) == back
    assert table.take(8, metadata=rollback).windows == ()


def history_at(table: GoldenPipeline, version: int, snapshot: int | None = None) -> Path:
    """Copy a version's metadata, with the main branch set back to a snapshot if one is given."""
    name = f"metadata/v{version}.metadata.json"
    raw = json.loads((golden(table.case).folder / "table" / name).read_text())
    file = table.root / "table" / name
    if snapshot is not None:
        time = raw["last-updated-ms"] = raw["last-updated-ms"] + 1000
        raw["current-snapshot-id"] = raw["refs"]["main"]["snapshot-id"] = snapshot
        raw["snapshot-log"].append({"timestamp-ms": time, "snapshot-id": snapshot})
        file = file.with_name(f"v{version + 1}.metadata.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(raw))
    return file


def engines_state(case: str, snapshot: int) -> Counter[tuple[Any, ...]]:
    """Count what the engine reads of a snapshot, by id as text and `v`."""
    (found,) = (item for item in answers(case)["snapshots"] if item["snapshot_id"] == snapshot)
    at = [found["columns"].index(name) for name in ("id", "v")]
    return Counter((str(row[at[0]]), row[at[1]]) for row in found["rows"])


def test_expired_checkpoint_goes_on_by_row_lineage(tmp_path: Path) -> None:
    table = GoldenPipeline("expired_lineage_v3", tmp_path, CHANGES | LATEST)
    table.take(3)

    table.take(8, on_expired_cursor="lineage_upserts")

    updated, added = ("2", "bb", "UPSERT"), ("6", "f", "UPSERT")
    assert table.published("part", "v", "_change_type") == {updated: 1, added: 1}


def test_snapshot_mode_replaces_the_state_with_each_window(tmp_path: Path) -> None:
    table = GoldenPipeline("rollback_v2", tmp_path, {"read": {"mode": "snapshot"}})

    table.take(6)
    assert table.published() == rows(2, 3, 4)
    table.take(9)

    assert table.published() == rows(1, 2, 3, 5, 6)
    assert set(kinds(table)) == {WindowKind.RELOAD}
    assert table.take(9).windows == ()


def test_tag_that_is_moved_is_read_again(tmp_path: Path) -> None:
    table = GoldenPipeline("branches_v2", tmp_path)

    table.take(15, tag="first_tag")
    assert table.published() == rows(1, 2)
    table.take(15, tag="audit_tag")

    state = next(
        item
        for item in answers("branches_v2")["snapshots"]
        if item["snapshot_id"] == 5564697606554327854
    )
    assert table.published() == {(str(row[0]), row[1]): 1 for row in state["rows"]}


def test_end_stops_the_pipeline_and_taking_it_away_goes_on(tmp_path: Path) -> None:
    third = answers("rollback_v2")["lineage"][2]
    table = GoldenPipeline("rollback_v2", tmp_path)

    table.take(4, end=answers("rollback_v2")["lineage"][1])
    assert table.published() == rows(1, 2)
    assert table.take(4, end=answers("rollback_v2")["lineage"][1]).windows == ()
    table.take(4)
    assert table.take(4, end=answers("rollback_v2")["lineage"][0]).windows == ()

    assert table.published() == rows(1, 2, 3)
    assert checkpoint(table) == third


REFUSED = {
    "no such branch": ({"branch": "nowhere"}, RefNotFound),
    "tag as a branch": ({"branch": "first_tag"}, RefNotFound),
    "no such tag": ({"tag": "audit"}, RefNotFound),
    "no such snapshot": ({"snapshot_id": 42}, SnapshotNotFound),
    "before the log": ({"as_of_timestamp": 1}, SnapshotLogMissing),
    "start on another branch": ({"start": {"after": 441444719473255731}}, StartNotAncestor),
    "end on another branch": ({"end": 441444719473255731}, StartNotAncestor),
    "no such end": ({"end": "nothing"}, RefNotFound),
}


@pytest.mark.parametrize(("keys", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_selection_that_names_nothing_is_refused_before_anything_is_taken(
    tmp_path: Path, keys: dict[str, Any], error: type[IcebergSourceError]
) -> None:
    table = GoldenPipeline("branches_v2", tmp_path)

    with pytest.raises(error):
        table.take(15, **keys)

    stood = table.standing()
    assert (stood["windows"], stood["partitions"]) == ((), ())
    # The target says whose it is before its source is asked.
    assert set(stood["files"]) <= {OWNER_FILE}


LISTED = {
    "no such snapshot": ({"snapshot_id": 42, "read": {}}, "snapshot_id"),
    "before the log": ({"as_of_timestamp": 1, "read": {}}, "snapshot_id"),
    "start on another branch": ({"start": {"after": 441444719473255731}}, "start"),
    "start that is none": ({"start": {"after": 42}}, "start"),
    "end on another branch": ({"end": 441444719473255731}, "end"),
    "end that is none": ({"end": 42}, "end"),
}


@pytest.mark.follows("SnapshotNotFound", "SnapshotLogMissing", "StartNotAncestor")
@pytest.mark.parametrize(("wrong", "key"), LISTED.values(), ids=LISTED.keys())
def test_snapshot_that_is_chosen_from_the_list_that_is_named_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], key: str
) -> None:
    table = GoldenPipeline("branches_v2", tmp_path, SKIP)
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_LEDGER", table.ledger)
    with pytest.raises(IcebergSourceError, match="`tidegate instants PIPELINE`"):
        table.take(15, **wrong)

    listed = CliRunner().invoke(app, ["instants", "golden", "--json"])

    assert listed.exit_code == 0
    assert answers("branches_v2")["lineage"] == [
        int(item["instant"]["id"]) for item in json.loads(listed.stdout)["instants"]
    ]
    second = answers("branches_v2")["lineage"][1]
    if key == "start":
        table.take(15, start={"after": second})
    else:
        table.take(15, **{"read": wrong.get("read", SKIP["read"]), key: second})
    came = Counter({("10", "audit"): 1, ("3", "v3"): 1, ("4", "v4"): 1})
    assert table.published() == (came if key == "start" else rows(1, 2))
