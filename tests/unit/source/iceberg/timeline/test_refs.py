"""What is read: a branch, a tag, a snapshot, or what stood at a time (ICE-2.7 to 2.10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import CASES, answers, golden, golden_copy
from tidegate.errors import (
    EmptyTable,
    RefNotFound,
    SnapshotLogMissing,
    SnapshotNotFound,
    StartNotAncestor,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.errors import TidegateError
    from tidegate.model.plan import Pin

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _pin(case: str, **keys: Any) -> Pin:
    return golden(case).source(**keys).timeline.pin(NOW)


def _head(case: str, **keys: Any) -> int | None:
    pin = _pin(case, **keys)
    return int(pin.head.id) if pin.head else None


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (case, name)
        for case in CASES
        if case != "variant_v3"  # refused whole
        for name in answers(case).get("refs", {})
    ],
)
def test_ref_is_read_at_its_snapshot(case: str, name: str) -> None:
    ref = answers(case)["refs"][name]

    assert _head(case, **{ref["type"]: name}) == ref["snapshot-id"]


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"branch": "nowhere"}, RefNotFound),
        ({"branch": "first_tag"}, RefNotFound),
        ({"tag": "side"}, RefNotFound),
        ({"snapshot_id": 42}, SnapshotNotFound),
        ({"as_of_timestamp": 0}, SnapshotLogMissing),
        ({"end": 42}, SnapshotNotFound),
        ({"end": "nothing"}, RefNotFound),
        ({"end": 2435882086678518949, "branch": "nowhere"}, RefNotFound),
        ({"end": 441444719473255731}, StartNotAncestor),
    ],
)
def test_name_that_is_not_there_is_refused(
    keys: dict[str, Any], error: type[TidegateError]
) -> None:
    with pytest.raises(error):
        _pin("branches_v2", **keys)


@pytest.mark.parametrize(
    "keys", [{"snapshot_id": 1}, {"tag": "x"}, {"as_of_timestamp": 4102444800000}, {"end": 5}]
)
def test_selection_of_an_empty_table_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(EmptyTable):
        _pin("empty_table_v2", **keys)


def test_empty_table_itself_is_no_mistake() -> None:
    assert _head("empty_table_v2") is None
    assert _head("empty_table_v2", end="2026-01-01T00:00:00Z") is None


def test_time_is_looked_up_in_the_log_and_not_in_the_lineage() -> None:
    for case in ("rollback_v2", "set_current_v2", "branches_v2"):
        for asked in answers(case)["as_of"]:
            if "as_of_snapshot_id" in asked:
                found = _head(case, as_of_timestamp=asked["timestamp_ms"])
                assert found == asked["as_of_snapshot_id"]
            else:
                with pytest.raises(SnapshotLogMissing):
                    _head(case, as_of_timestamp=asked["timestamp_ms"])


def test_log_without_entries_says_so(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    table.edit_metadata(lambda raw: raw.update({"snapshot-log": []}))

    with pytest.raises(SnapshotLogMissing, match="an empty log"):
        table.source(as_of_timestamp="2099-01-01T00:00:00Z").timeline.pin(NOW)


def test_branch_is_read_with_the_tables_schema_and_a_tag_with_its_own() -> None:
    branch = [name for name, _ in _pin("branches_v2", branch="side").schema]
    tag = [name for name, _ in _pin("branches_v2", tag="first_tag").schema]
    told = [name for name, _ in _pin("branches_v2", tag="first_tag", read_schema="table").schema]

    assert branch == told == ["id", "v", "extra"]
    assert tag == ["id", "v"]


def test_start_is_resolved_on_the_branch() -> None:
    source = golden("branches_v2").source(branch="side", start={"after": "first_tag"})
    pin = source.timeline.pin(NOW)
    checkpoint = source.timeline.first_checkpoint(pin)

    assert checkpoint is not None
    assert int(checkpoint.id) == answers("branches_v2")["refs"]["first_tag"]["snapshot-id"]
    following = [int(item.id) for item in source.timeline.instants(pin, checkpoint)]
    assert following[-1] == answers("branches_v2")["refs"]["side"]["snapshot-id"]


def test_end_by_id_tag_and_time_is_inclusive() -> None:
    lineage = answers("branches_v2")["lineage"]
    source = golden("branches_v2").source()
    instants = source.timeline.instants(source.timeline.pin(NOW), None)
    time = instants[2].time

    assert _head("branches_v2", end=lineage[2]) == lineage[2]
    assert _head("branches_v2", end="first_tag") == lineage[1]
    assert _head("branches_v2", end=time.isoformat()) == lineage[2]
    assert _head("branches_v2", end=(time - timedelta(milliseconds=1)).isoformat()) == lineage[1]
    early = instants[0].time - timedelta(milliseconds=1)
    assert _head("branches_v2", end=early.isoformat()) is None


def test_tag_named_like_a_number_is_found_where_no_snapshot_is(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    second = answers("append_v2")["lineage"][1]
    table.edit_metadata(
        lambda raw: raw["refs"].update({"2026": {"snapshot-id": second, "type": "tag"}})
    )
    source = table.source(start={"after": 2026})

    checkpoint = source.timeline.first_checkpoint(source.timeline.pin(NOW))

    assert checkpoint is not None
    assert int(checkpoint.id) == second
