"""Checkpoints join on to the head's lineage, or the error says how they do not (ICE-2.17, 2.18)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import answers, golden, golden_copy, instant
from tidegate.errors import (
    CursorExpired,
    CursorOffLineage,
    HistoryTruncated,
    InstantTimeMissing,
    SnapshotNotFound,
    TableIdentityChanged,
)
from tidegate.model.instant import DataInterval, Instant, InstantRange

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ERRORS = {
    "CursorOffLineage": CursorOffLineage,
    "HistoryTruncated": HistoryTruncated,
    "CursorExpired": CursorExpired,
}


def _stated() -> list[Any]:
    return [
        pytest.param(case, stated, id=f"{case}-{stated['error']}")
        for case in ("rollback_v2", "expired_head_v2", "expired_middle_v2")
        for stated in answers(case)["expect"]["errors"]
        if "cursor" in stated and stated.get("read_mode", "append") == "append"
    ]


def _kept_children() -> list[Any]:
    return [
        pytest.param(case, stated, id=case)
        for case in ("expired_head_v2", "expired_middle_v2")
        for stated in answers(case)["expect"]["cursor"]
        if stated["state"] == "expired, child kept"
    ]


@pytest.mark.parametrize(("case", "stated"), _stated())
def test_checkpoint_that_does_not_join_on_raises_the_error_of_its_state(
    case: str, stated: dict[str, Any]
) -> None:
    source = golden(case).source()
    pin = source.timeline.pin(NOW)

    with pytest.raises(ERRORS[stated["error"]]) as refused:
        source.timeline.instants(pin, instant(stated["cursor"], NOW))

    values = refused.value.values
    assert str(stated["cursor"]) in {values.get("checkpoint"), values.get("start")}
    assert values["head"] == str(answers(case)["lineage"][-1])
    if "common_ancestor" in values:
        assert values["common_ancestor"] == str(stated["common_ancestor"])


@pytest.mark.parametrize(("case", "stated"), _kept_children())
def test_expired_checkpoint_with_its_child_kept_reads_on(case: str, stated: dict[str, Any]) -> None:
    source = golden(case).source()
    pin = source.timeline.pin(NOW)

    found = source.timeline.instants(pin, instant(stated["cursor"], NOW))

    assert [int(step.id) for step in found] == stated["append_reads"]


@pytest.mark.parametrize("case", ["append_v2", "rollback_v2", "branches_v2", "expired_head_v2"])
def test_instants_are_the_lineage_and_split_at_every_checkpoint(case: str) -> None:
    source = golden(case).source()
    pin = source.timeline.pin(NOW)
    lineage = answers(case)["lineage"]

    whole = source.timeline.instants(pin, None)

    assert [int(step.id) for step in whole] == lineage
    for index, checkpoint in enumerate(whole):
        assert source.timeline.instants(pin, checkpoint) == whole[index + 1 :]
        any_day = DataInterval(NOW, NOW + timedelta(days=1))
        assert source.timeline.history(pin, checkpoint, any_day) == whole[: index + 1]


def test_checkpoint_that_is_no_snapshot_id_is_not_found() -> None:
    source = golden("append_v2").source()
    pin = source.timeline.pin(NOW)

    with pytest.raises(SnapshotNotFound):
        source.timeline.instants(pin, Instant("first", NOW))


def test_checkpoint_of_a_table_that_lost_all_snapshots_is_off_lineage() -> None:
    source = golden("empty_table_v2").source()
    pin = source.timeline.pin(NOW)

    with pytest.raises(CursorExpired):
        source.timeline.instants(pin, Instant("42", NOW))


def test_window_from_the_beginning_whose_beginning_expired_is_truncated() -> None:
    source = golden("expired_head_v2").source(start="earliest")
    pin = source.timeline.pin(NOW)
    assert pin.head

    with pytest.raises(HistoryTruncated):
        source.slicing.units(pin, InstantRange(None, pin.head))


def test_window_whose_end_expired_is_not_found() -> None:
    source = golden("expired_middle_v2").source()
    pin = source.timeline.pin(NOW)
    expired = Instant(str(answers("expired_middle_v2")["expect"]["cursor"][0]["cursor"]), NOW)

    with pytest.raises(SnapshotNotFound):
        source.slicing.units(pin, InstantRange(None, expired))


def test_oldest_snapshot_with_a_late_sequence_number_is_noted(tmp_path: Path) -> None:
    table = golden_copy("expired_head_v2", tmp_path)

    def forget_parent(raw: dict[str, Any]) -> None:
        # pyiceberg's expiry does that (ICE-2.16).
        known = {step["snapshot-id"] for step in raw["snapshots"]}
        for step in raw["snapshots"]:
            if step.get("parent-snapshot-id") not in known:
                step.pop("parent-snapshot-id", None)

    table.edit_metadata(forget_parent)
    source = table.source(start="earliest", read={"on_non_append": "skip"})
    pin = source.timeline.pin(NOW)
    assert pin.head

    units = source.slicing.units(pin, InstantRange(None, pin.head))

    assert any("may be truncated" in note for note in units.notes)


@pytest.mark.parametrize(("case", "told"), [("append_v1", True), ("append_v2", False)])
def test_whole_history_without_numbers_is_noted_as_not_known(case: str, told: bool) -> None:
    source = golden(case).source(start="earliest")
    pin = source.timeline.pin(NOW)
    assert pin.head

    notes = source.slicing.units(pin, InstantRange(None, pin.head)).notes

    assert any("unknown whether history is truncated" in note for note in notes) is told


def test_another_table_in_its_place_is_refused() -> None:
    source = golden("append_v2").source()

    with pytest.raises(TableIdentityChanged) as refused:
        source.timeline.pin(NOW, expected_identity="0000")

    assert refused.value.found == answers("append_v2")["table_uuid"]


def test_summary_property_gives_the_time_and_a_compaction_takes_its_parents(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    known_at = datetime(2013, 2, 5, 6, tzinfo=UTC)

    def add_times(raw: dict[str, Any]) -> None:
        *appended, last = raw["snapshots"]
        for index, step in enumerate(appended):
            moment = known_at + timedelta(hours=6 * index)
            step["summary"]["known-at"] = moment.astimezone().isoformat()
        last["summary"]["operation"] = "replace"

    table.edit_metadata(add_times)
    source = table.source(instant_time={"summary": "known-at"})

    times = [step.time for step in source.timeline.instants(source.timeline.pin(NOW), None)]

    hours = [0, 6, 12, 12]
    assert times == [known_at + timedelta(hours=hour) for hour in hours]


@pytest.mark.parametrize(
    ("text", "found"),
    [(None, "none"), ("soon", "'soon'"), ("2013-02-05T06:00:00", "'2013-02-05T06:00:00'")],
    ids=["absent", "no-time", "no-zone"],
)
def test_summary_property_that_is_no_time_names_snapshot_and_key(
    text: str | None, found: str, tmp_path: Path
) -> None:
    table = golden_copy("append_v2", tmp_path)
    if text is not None:
        table.edit_metadata(
            lambda raw: [step["summary"].update({"known-at": text}) for step in raw["snapshots"]]
        )
    source = table.source(instant_time={"summary": "known-at"})

    with pytest.raises(InstantTimeMissing) as refused:
        source.timeline.pin(NOW)

    assert (refused.value.key, refused.value.found) == ("known-at", found)


def test_instant_is_found_by_id_and_by_time_between_commits() -> None:
    source = golden("append_v2").source()
    pin = source.timeline.pin(NOW)
    first, second, *_ = source.timeline.instants(pin, None)

    assert source.timeline.named(pin, second.id) == second
    assert source.timeline.named(pin, "yesterday") is None
    with pytest.raises(SnapshotNotFound):
        source.timeline.named(pin, "42")
    assert source.timeline.as_of(pin, first.time) == first
    assert source.timeline.as_of(pin, second.time - timedelta(milliseconds=1)) == first
    assert source.timeline.as_of(pin, first.time - timedelta(milliseconds=1)) is None
