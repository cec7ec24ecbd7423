"""A checkpoint is classified against the head, and each state knows its ways out (ICE-2.17)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import answers, golden, golden_copy
from tidegate.errors import SnapshotNotFound
from tidegate.model.instant import Instant
from tidegate.model.report import CheckpointState

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.iceberg import IcebergSource

NOW = datetime(2026, 11, 21, tzinfo=UTC)
# Table, further keys, checkpoint, its state, common ancestor, ways out.
STATES: dict[str, tuple[str, dict[str, Any], int, str, int | None, set[str]]] = {
    "caught up": ("append_v2", {}, 7088665829850776159, "caught up", 7088665829850776159, set()),
    "in lineage": ("append_v2", {}, 5356902673753299918, "in lineage", 5356902673753299918, set()),
    "child kept": (
        "expired_middle_v2",
        {},
        3962197291168650699,
        "expired, child kept",
        None,
        set(),
    ),
    "rolled back": (
        "rollback_v2",
        {},
        1548982438721443699,
        "off lineage",
        480755366994390652,
        {"snapshot_diff", "reset"},
    ),
    "branch replaced": (
        "replaced_branch_v2",
        {"branch": "b"},
        2405646180197759666,
        "off lineage",
        9047342186800708193,
        {"snapshot_diff", "reset"},
    ),
    "set to another": (
        "set_current_v2",
        {},
        4907110644608194409,
        "off lineage",
        9005655725254862085,
        {"snapshot_diff", "reset"},
    ),
    "table replaced": (
        "replaced_table_v2",
        {},
        8824396864612292795,
        "lineage cut",
        None,
        {"snapshot_diff", "full_reload", "from_oldest"},
    ),
    "between expired": (
        "expired_middle_v2",
        {},
        8796461943505100077,
        "lineage cut",
        None,
        {"snapshot_diff", "full_reload", "from_oldest"},
    ),
    "expired": (
        "expired_head_v2",
        {},
        1184756282218802032,
        "expired",
        None,
        {"full_reload", "from_oldest"},
    ),
    "expired with lineage": (
        "expired_lineage_v3",
        {},
        1838192387566272930,
        "expired",
        None,
        {"lineage_upserts", "full_reload", "from_oldest"},
    ),
    "staged, never on main": (
        "wap_v2",
        {},
        next(
            item["snapshot_id"]
            for item in answers("wap_v2")["snapshots"]
            if item["snapshot_id"] not in answers("wap_v2")["lineage"]
        ),
        "off lineage",
        None,
        {"snapshot_diff", "reset"},
    ),
}


def _state(source: IcebergSource, checkpoint: int, number: int | None = 2) -> CheckpointState:
    return source.timeline.checkpoint_state(
        source.timeline.pin(NOW), Instant(str(checkpoint), NOW, number)
    )


@pytest.mark.parametrize("row", STATES.values(), ids=STATES.keys())
def test_checkpoint_is_classified_with_its_ways_out(row: tuple[Any, ...]) -> None:
    case, keys, checkpoint, state, common, ways_out = row

    mode = "changelog" if {"snapshot_diff", "lineage_upserts"} & {*ways_out} else "append"
    found = _state(golden(case).source(**keys, read={"mode": mode}), checkpoint)

    assert found.state == state
    assert found.checkpoint == str(checkpoint)
    if common is not None:
        assert found.common_ancestor == str(common)
    assert len(found.ways_out) == len(ways_out)
    for policy in ways_out:
        assert any(f": {policy}`" in way for way in found.ways_out)
    assert CheckpointState.from_json(found.to_json()) == found


def test_gap_of_sequence_numbers_is_told() -> None:
    source = golden("expired_head_v2").source()

    assert _state(source, 1184756282218802032, 2).sequence_gap == 3
    assert "differ by 3" in _state(source, 1184756282218802032, 2).detail
    assert "no commit lies between" in _state(source, 1184756282218802032, 4).detail
    assert "do not tell" in _state(source, 1184756282218802032, None).detail


def test_upserts_are_no_way_out_without_the_checkpoints_sequence_number() -> None:
    source = golden("expired_lineage_v3").source(read={"mode": "changelog"})

    found = _state(source, 1838192387566272930, None)

    assert not any("lineage_upserts" in way for way in found.ways_out)


def test_changes_are_no_way_out_where_published_rows_have_no_kind() -> None:
    states = [
        _state(golden(case).source(**keys), checkpoint)
        for case, keys, checkpoint, *_ in STATES.values()
    ]

    ways = [way for found in states for way in found.ways_out]
    assert ways
    assert not any("snapshot_diff" in way or "lineage_upserts" in way for way in ways)


def test_number_of_a_checkpoint_survives_in_the_ledgers_words() -> None:
    source = golden("append_v2").source()
    head = source.timeline.pin(NOW).head

    assert head is not None
    assert head.sequence_number == len(answers("append_v2")["lineage"])
    assert Instant.from_json(head.to_json()).sequence_number == head.sequence_number
    unnumbered = Instant(head.id, head.time)
    assert "sequence_number" not in unnumbered.to_json()
    assert Instant.from_json(unnumbered.to_json()) == head


def test_v1_table_has_no_numbers() -> None:
    head = golden("append_v1").source().timeline.pin(NOW).head

    assert head is not None
    assert head.sequence_number is None


def test_checkpoint_that_is_no_id_is_not_found() -> None:
    with pytest.raises(SnapshotNotFound):
        golden("append_v2").source().timeline.checkpoint_state(
            golden("append_v2").source().timeline.pin(NOW), Instant("first", NOW)
        )


def test_rollback_to_nothing_is_off_lineage(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)

    def empty(raw: dict[str, Any]) -> None:
        raw["current-snapshot-id"] = -1
        raw["refs"] = {}

    table.edit_metadata(empty)

    assert _state(table.source(), answers("append_v2")["lineage"][0]).state == "off lineage"
