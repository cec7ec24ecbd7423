"""Windows and snapshots of golden tables have the rows that the engine says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from golden_iceberg import answers, fits, golden, instant, read
from tidegate.errors import NonAppendSnapshot, UnsupportedFeature
from tidegate.model.instant import InstantRange

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CASES = [
    "append_v1",
    "append_v2",
    "append_v3",
    "branches_v2",
    "cow_v2",
    "empty_table_v2",
    "expired_head_v2",
    "expired_middle_v2",
    "file_scheme_v2",
    "initial_default_v3",
    "merged_manifests_v1",
    "migrated_v2",
    "mor_v2",
    "replaced_branch_v2",
    "rollback_v2",
    "schema_evolution_nested_v2",
    "schema_evolution_v2",
    "sorted_bounds_v2",
    "struct_fields_replaced_v2",
    "transform_identity_v2",
    "types_uuid_fixed_v2",
    "wap_v2",
]
BY_SPEC = {"struct_fields_replaced_v2"}
"""The engine reads NULL where the specification says a struct of defaults (ICE-6.15)."""


def _windows() -> list[Any]:
    return [
        pytest.param(case, window, id=f"{case}-{number}")
        for case in CASES
        if case not in BY_SPEC
        for number, window in enumerate(answers(case)["expect"].get("append", []))
    ]


def _snapshots() -> list[Any]:
    return [
        pytest.param(case, snapshot, id=f"{case}-{number}")
        for case in CASES
        if case not in BY_SPEC
        for number, snapshot in enumerate(answers(case)["snapshots"])
        if "rows" in snapshot or "digest" in snapshot
    ]


@pytest.mark.parametrize(("case", "window"), _windows())
def test_append_window_skipping_others_has_the_rows_of_the_engine(
    case: str, window: dict[str, Any]
) -> None:
    source = golden(case).source(start="earliest", read={"on_non_append": "skip"})
    pin = source.pin(NOW)
    end = instant(window["end_inclusive"], NOW)
    assert end

    units = source.units(pin, InstantRange(instant(window["start_exclusive"], NOW), end))

    assert fits(read(source, pin, units), window)
    skipped = len(window["replace_skipped"]) + len(window["non_append"])
    assert bool(skipped) == any(note.startswith("skipped") for note in units.notes)


@pytest.mark.parametrize(("case", "window"), _windows())
def test_append_window_by_default_refuses_what_is_no_append(
    case: str, window: dict[str, Any]
) -> None:
    source = golden(case).source(start="earliest")
    pin = source.pin(NOW)
    end = instant(window["end_inclusive"], NOW)
    assert end
    window_range = InstantRange(instant(window["start_exclusive"], NOW), end)

    if window["default"] == "rows":
        assert fits(read(source, pin, source.units(pin, window_range)), window)
        return
    with pytest.raises(NonAppendSnapshot) as refused:
        source.units(pin, window_range)
    for snapshot_id, kind in window["non_append"]:
        assert f"{snapshot_id} ({kind}: " in refused.value.snapshots
    assert "None" not in refused.value.snapshots


@pytest.mark.parametrize(("case", "snapshot"), _snapshots())
def test_snapshot_read_has_the_rows_of_the_engine_or_names_the_delete_files(
    case: str, snapshot: dict[str, Any]
) -> None:
    source = golden(case).source(read={"mode": "snapshot"})
    at = instant(snapshot["snapshot_id"], NOW)
    assert at
    pin = source.at(source.pin(NOW), at)

    raw = json.loads(golden(case).metadata.read_text())
    summary = next(
        step["summary"] for step in raw["snapshots"] if str(step["snapshot-id"]) == at.id
    )
    if int(summary.get("total-delete-files", 0)):
        with pytest.raises(UnsupportedFeature, match="delete files"):
            source.units(pin, InstantRange(None, at))
    else:
        assert fits(read(source, pin, source.units(pin, InstantRange(None, at))), snapshot)


def test_struct_without_any_of_its_fields_in_the_file_reads_by_the_specification() -> None:
    case = "struct_fields_replaced_v2"
    source = golden(case).source()
    pin = source.pin(NOW)
    assert pin.head

    table = read(source, pin, source.units(pin, InstantRange(None, pin.head)))

    assert fits(table, {"rows": answers(case)["expect"]["by_spec"]["head_rows"]})


def test_variant_column_is_refused_while_pinning() -> None:
    with pytest.raises(UnsupportedFeature, match="a column of type variant"):
        golden("variant_v3").source().pin(NOW)


def test_schema_of_a_read_as_of_a_snapshot_is_the_snapshots_own() -> None:
    case = "schema_evolution_v2"
    oldest = answers(case)["snapshots"][0]
    first = instant(oldest["snapshot_id"], NOW)
    assert first
    current = [name for name, _ in answers(case)["head"]["columns"]]

    batch = golden(case).source(read={"mode": "snapshot"})
    table = golden(case).source(read={"mode": "snapshot", "schema": "table"})

    assert batch.schema(batch.at(batch.pin(NOW), first)).names == oldest["columns"]
    assert table.schema(table.at(table.pin(NOW), first)).names == current
