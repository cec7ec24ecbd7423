"""Every state of the golden tables is read as the engine reads it, through the library."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import READABLE, expected, fits, golden
from golden_questions import question
from staged_reads import StagedReads
from tidegate import errors
from tidegate.execute.local import LocalExecutor
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tidegate.model.plan import Piece

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TASKS_LISTED = 60
CONTENTS = {"POSITION_DELETES": "positions", "EQUALITY_DELETES": "keys"}


def with_rows(case: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The snapshots whose rows the engine wrote down."""
    for number, snapshot in enumerate(expected(case)["snapshots"]):
        if "row_count" in snapshot:
            yield number, snapshot


OWN = [
    question(case, number, snapshot) for case in READABLE for number, snapshot in with_rows(case)
]
CURRENT = [
    question(case, number, snapshot)
    for case in READABLE
    for number, snapshot in with_rows(case)
    if "in_current_schema" in snapshot
]
HEADS = [question(case) for case in READABLE]
PLACED = [question(case) for case in READABLE if "with_metadata_columns" in expected(case)["head"]]
TASKS = [question(case) for case in READABLE if "tasks" in expected(case)["head"]]
REFS = [question(case, name, name) for case in READABLE for name in expected(case).get("refs", {})]
TIMES = [question(case) for case in READABLE if expected(case).get("as_of")]
FILTERS = [
    question(case, number, asked)
    for case in READABLE
    for number, asked in enumerate(expected(case)["expect"].get("filter", []))
]
LINEAGES = [
    question(case, number, int(snapshot_id), rows)
    for case in READABLE
    for number, (snapshot_id, rows) in enumerate(
        expected(case)["expect"].get("lineage_upserts", {}).get("at_snapshot", {}).items()
    )
]


@pytest.mark.parametrize(("case", "snapshot"), OWN)
def test_snapshot_read_has_the_engines_rows_in_the_snapshots_own_schema(
    case: str, snapshot: Mapping[str, Any]
) -> None:
    table = golden(case).changes("snapshot", end=snapshot["snapshot_id"])

    assert table.column_names == snapshot.get("columns", table.column_names)
    assert fits(table, snapshot)


@pytest.mark.parametrize(("case", "snapshot"), CURRENT)
def test_snapshot_read_with_the_tables_schema_has_the_engines_rows(
    case: str, snapshot: Mapping[str, Any]
) -> None:
    read = {"schema": "table"}

    table = golden(case).changes("snapshot", end=snapshot["snapshot_id"], read=read)

    assert fits(table, snapshot["in_current_schema"])


@pytest.mark.parametrize("case", HEADS)
def test_head_read_has_the_engines_rows_in_the_tables_schema(case: str) -> None:
    head = expected(case)["head"]

    table = golden(case).changes("snapshot")

    names = [column if isinstance(column, str) else column[0] for column in head.get("columns", ())]
    assert table.column_names == (names or table.column_names)
    assert fits(table, head)


@pytest.mark.parametrize("case", PLACED)
def test_metadata_columns_of_the_head_are_the_engines(case: str) -> None:
    placed = expected(case)["head"]["with_metadata_columns"]
    table = golden(case).changes("snapshot", columns=placed["columns"])

    if "rows" in placed:  # a digest is of whole paths
        files = [golden(case).relative(path) for path in table.column("_file").to_pylist()]
        at = table.schema.get_field_index("_file")
        table = table.set_column(at, "_file", [files])

    assert table.column_names == placed["columns"]
    assert fits(table, placed)


@pytest.mark.parametrize("case", TASKS)
def test_plan_of_the_head_binds_to_each_file_the_deletes_that_the_library_binds(
    case: str,
) -> None:
    source = golden(case).source(read={"mode": "snapshot"})
    pin = source.timeline.pin(NOW)
    assert pin.head

    units = source.slicing.units(pin, InstantRange(None, pin.head))

    tasks = [_expected_task(task) for task in expected(case)["head"]["tasks"] if task["records"]]
    found = sorted((_task(case, piece) for piece in units), key=lambda task: task["file"])
    # Of a table with many files the first ones are written down.
    assert found[: len(tasks)] == tasks
    assert len(found) == len(tasks) or len(tasks) == TASKS_LISTED


def _task(case: str, piece: Piece) -> dict[str, Any]:
    details = piece.slice.details
    return {
        "file": golden(case).relative(piece.path),
        "records": piece.rows,
        "data_sequence_number": details["sequence"],
        "file_sequence_number": piece.slice.sequence,
        "spec_id": details["spec"],
        "first_row_id": details["first_row_id"],
        "deletes": sorted(
            (
                golden(case).relative(delta.path),
                delta.kind.value,
                delta.offset,
                delta.sequence,
            )
            for delta in piece.slice.deltas
        ),
    }


def _expected_task(task: Mapping[str, Any]) -> dict[str, Any]:
    deletes = sorted(
        (
            delete["file"],
            "vector" if delete["format"] == "PUFFIN" else CONTENTS[delete["content"]],
            delete["content_offset"],
            delete["data_sequence_number"],
        )
        for delete in task["deletes"]
    )
    return {**task, "deletes": deletes}


@pytest.mark.parametrize(("case", "name"), REFS)
def test_ref_read_has_the_rows_of_its_snapshot(case: str, name: str) -> None:
    found = expected(case)
    ref = found["refs"][name]
    snapshot = next(
        item for item in found["snapshots"] if item["snapshot_id"] == ref["snapshot-id"]
    )
    # A branch is read with the table's schema, a tag with its snapshot's (ICE-2.9).
    branch = ref["type"] == "branch"
    answer = snapshot.get("in_current_schema", snapshot) if branch else snapshot

    table = golden(case).changes("snapshot", **{ref["type"]: name})

    assert fits(table, answer)
    if written := found["expect"].get("refs", {}).get(name):
        assert table.column_names == written["columns"]
        assert fits(table, written)


@pytest.mark.parametrize("case", TIMES)
def test_as_of_a_time_reads_the_snapshot_that_the_log_had_then(case: str) -> None:
    for asked in expected(case)["as_of"]:
        source = golden(case).source(
            as_of_timestamp=asked["timestamp_ms"], read={"mode": "snapshot"}
        )
        if "as_of_error" in asked:
            with pytest.raises(errors.SnapshotLogMissing):
                source.timeline.pin(NOW)
            continue
        head = source.timeline.pin(NOW).head
        assert head
        assert head.id == str(asked["as_of_snapshot_id"])


@pytest.mark.parametrize(("case", "asked"), FILTERS)
def test_filtered_head_has_the_rows_that_the_engine_keeps(
    case: str, asked: Mapping[str, Any]
) -> None:
    read = {"filter": asked["filter"]}

    table = golden(case).changes("snapshot", columns=["id"], read=read)

    assert sorted(table.column("id").to_pylist()) == asked["ids"]


@pytest.mark.parametrize(("case", "snapshot_id", "rows"), LINEAGES)
def test_row_lineage_of_a_snapshot_is_the_engines(
    case: str, snapshot_id: int, rows: list[Any]
) -> None:
    columns = expected(case)["expect"]["lineage_upserts"]["columns"]

    table = golden(case).changes("snapshot", end=snapshot_id, columns=columns)

    assert fits(table, {"rows": rows})


@pytest.mark.parametrize("case", [question("upgrade_v1_v2_v3")])
def test_row_lineage_before_the_first_v3_commit_is_null(case: str) -> None:
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    answer = expected(case)["expect"]["lineage_before_first_v3_commit"]

    for snapshot_id, rows in answer.items():
        table = golden(case).changes("snapshot", end=int(snapshot_id), columns=columns)
        assert fits(table, {"rows": rows})


def test_variant_column_is_refused_and_the_others_can_be_read() -> None:
    table = golden("variant_v3")

    with pytest.raises(errors.UnsupportedFeature, match="a column of type variant"):
        table.changes("snapshot")
    assert table.changes("snapshot", columns=["id"]).to_pylist() == [{"id": 1}]


@pytest.mark.follows("ColumnUnreadable")
def test_orc_timestamp_that_cannot_be_held_is_refused_and_the_others_can_be_read() -> None:
    table = golden("orc_far_timestamps_v2")

    with pytest.raises(errors.ColumnUnreadable, match=r"data/.*\.orc: column 'ts'"):
        table.changes("snapshot")
    assert sorted(table.changes("snapshot", columns=["id"]).column("id").to_pylist()) == [
        1,
        2,
        3,
        4,
    ]


@pytest.mark.parametrize(
    "case", [case for case in READABLE if "by_spec" in expected(case)["expect"]]
)
def test_corrected_answers_are_those_of_the_specification(case: str) -> None:
    """The suite's own corrections of the engine agree with what is written beside the table."""
    by_spec, head = expected(case)["expect"]["by_spec"], expected(case)["head"]

    assert len(head["rows"]) == by_spec["head_row_count"]
    assert by_spec.get("head_rows", head["rows"]) == head["rows"]
    assert by_spec.get("deleted_id") not in [row[0] for row in head["rows"]]


@pytest.mark.parametrize("column", expected("event_time_v2")["expect"]["event_time"])
def test_event_time_bounds_of_the_planned_files_are_those_of_the_rows(
    column: str, tmp_path: Path
) -> None:
    table = golden("event_time_v2")
    low, high = table.answers["expect"]["event_time"][column]
    seconds = isinstance(low, int)
    event_time = {
        "column": column,
        "on_missing_bounds": "fail",
        **({"unit": "s"} if seconds else {}),
    }

    reads = StagedReads(tmp_path, LocalExecutor(1))
    preview = reads.preview(table.config(start="full"), event_time=event_time)

    bounds = [
        piece.event_times
        for split in preview.splits
        for part in split.sub_splits
        for piece in part.pieces
        if piece.event_times
    ]
    found = [
        min(item.smallest for item in bounds if item.smallest),
        max(item.largest for item in bounds if item.largest),
    ]
    assert [int(at.timestamp()) if seconds else _wall_clock(at) for at in found] == [low, high]


def _wall_clock(at: datetime) -> str:
    return at.replace(tzinfo=None).isoformat()
