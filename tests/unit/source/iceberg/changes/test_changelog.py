"""Plans of change reads name the files that commits touched, and refuse what cannot be told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import Golden, answers, fits, golden, golden_copy, instant, read
from tidegate.errors import ChangelogParentMissing, LineageUnavailable
from tidegate.model.instant import Instant, InstantRange
from tidegate.source.iceberg.manifests.decode import ManifestReader

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.slicing import Units

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def units(
    table: Golden,
    start: int | None,
    end: int | None = None,
    *,
    mode: str = "changelog",
    **read: Any,
) -> Units:
    """Plan a window over a golden table; without a start, from the oldest kept snapshot."""
    source = table.source(read={"mode": mode, **read}, start="earliest")
    pin = source.timeline.pin(NOW)
    last = instant(end or table.answers["current_snapshot_id"], NOW)
    assert last
    return source.slicing.units(
        source.timeline.at(pin, last), InstantRange(instant(start, NOW), last)
    )


def commits(found: Units) -> list[tuple[int, int]]:
    changes = [piece.slice.change for piece in found]
    return sorted({(change.ordinal, change.commit) for change in changes if change})


def test_compactions_in_a_window_take_no_ordinal_and_are_counted() -> None:
    found = units(golden("compaction_v2"), None)

    window = answers("compaction_v2")["expect"]["changelog"][0]
    assert commits(found) == [tuple(pair) for pair in window["ordinals"]]
    assert "skipped 2 replace snapshots" in found.notes


def test_file_that_a_commit_only_deletes_from_has_both_states_and_no_other_file_is_named() -> None:
    first, *_, last = answers("mor_v2")["lineage"]
    deleting = next(it for it in answers("mor_v2")["snapshots"] if it["operation"] == "delete")

    found = units(golden("mor_v2"), deleting["parent_id"], deleting["snapshot_id"])

    assert first != last
    for piece in found:
        change = piece.slice.change
        assert change is not None
        assert change.before is not None
        assert change.after is not None
        assert len(change.after) > len(change.before)


def _with_replaces(raw: dict[str, Any], count: int) -> None:
    """Let a thousand commits follow the head that did nothing but rewrite files."""
    head = raw["current-snapshot-id"]
    newest = next(it for it in raw["snapshots"] if it["snapshot-id"] == head)
    for number in range(1, count + 1):
        raw["snapshots"].append(
            {
                **newest,
                "snapshot-id": number,
                "parent-snapshot-id": number - 1 if number > 1 else head,
                "sequence-number": newest["sequence-number"] + number,
                "timestamp-ms": newest["timestamp-ms"] + number,
                "summary": {"operation": "replace"},
            }
        )
    raw["current-snapshot-id"] = count
    raw["last-sequence-number"] += count
    raw["refs"]["main"]["snapshot-id"] = count


def test_thousand_compactions_open_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden_copy("cow_v2", tmp_path)
    head = int(table.answers["current_snapshot_id"])
    table.edit_metadata(lambda raw: _with_replaces(raw, 1000))
    opened: list[object] = []
    monkeypatch.setattr(ManifestReader, "manifests", lambda _, it: opened.append(it))
    monkeypatch.setattr(ManifestReader, "entries", lambda *_: opened.append(_))

    found = units(table, head, 1000)

    assert len(found) == 0
    assert opened == []
    assert "skipped 1000 replace snapshots" in found.notes


def _expire(snapshot_id: int) -> Any:
    def change(raw: dict[str, Any]) -> None:
        raw["snapshots"] = [it for it in raw["snapshots"] if it["snapshot-id"] != snapshot_id]
        raw["snapshot-log"] = []

    return change


def test_changes_of_a_commit_whose_parent_was_expired_are_refused(tmp_path: Path) -> None:
    table = golden_copy("cow_v2", tmp_path)
    first, second = table.answers["lineage"][:2]
    table.edit_metadata(_expire(first))

    with pytest.raises(ChangelogParentMissing) as refused:
        units(table, None)

    assert refused.value.values["snapshot"] == str(second)
    assert refused.value.values["parent"] == str(first)


def test_changes_of_a_commit_whose_parents_files_are_gone_are_refused(tmp_path: Path) -> None:
    table = golden_copy("cow_v2", tmp_path)
    first, second = table.answers["lineage"][:2]
    lists = list((table.folder / "table" / "metadata").glob(f"snap-{first}-*.avro"))
    assert lists
    for file in lists:
        file.unlink()

    with pytest.raises(ChangelogParentMissing) as refused:
        units(table, first, second)

    assert "is gone" in str(refused.value)


@pytest.mark.parametrize("case", ["append_v1", "append_v2"])
def test_lineage_upserts_of_a_table_before_v3_are_refused(case: str) -> None:
    with pytest.raises(LineageUnavailable, match="format v"):
        units(golden(case), answers(case)["lineage"][0], mode="lineage_upserts")


def test_lineage_upserts_after_an_expired_checkpoint_go_on_from_its_sequence_number() -> None:
    answer = answers("expired_lineage_v3")["expect"]["lineage_upserts"]
    keys = {"mode": "lineage_upserts", "columns": answer["columns"]}
    source = golden("expired_lineage_v3").source(read=keys, on_expired_cursor="lineage_upserts")
    pin = source.timeline.pin(NOW)
    gone = Instant("1838192387566272930", NOW, sequence_number=2)
    assert pin.head

    found = source.slicing.units(pin, InstantRange(gone, pin.head))

    table = read(source, pin, found.pieces).select(answer["columns"])
    assert fits(table, {"rows": answer["since_sequence_number"]["2"]})


def test_lineage_upserts_up_to_a_commit_before_the_upgrade_are_refused() -> None:
    early, *_ = answers("upgrade_v1_v2_v3")["lineage"]
    unnumbered = answers("upgrade_v1_v2_v3")["lineage"][3]

    with pytest.raises(LineageUnavailable, match="without row ids"):
        units(golden("upgrade_v1_v2_v3"), early, unnumbered, mode="lineage_upserts")


def test_lineage_upserts_name_no_file_that_is_as_old_as_the_checkpoint() -> None:
    lineage = answers("lineage_v3")["lineage"]
    number = {it["snapshot_id"]: it["sequence_number"] for it in answers("lineage_v3")["snapshots"]}

    found = units(golden("lineage_v3"), lineage[3], mode="lineage_upserts")

    assert len(found)
    for piece in found:
        assert piece.slice.details["sequence"] > number[lineage[3]]
        assert piece.slice.details["since_sequence"] == number[lineage[3]]
