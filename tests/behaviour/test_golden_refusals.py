"""What the golden tables must be refused with: one typed error per stated question, no rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import CASES, READABLE, expected, golden
from golden_pipeline import GoldenPipeline
from golden_questions import question
from staged_reads import StagedReads
from tidegate import errors
from tidegate.execute.local import LocalExecutor
from tidegate.model.instant import Instant, InstantRange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tidegate.source.iceberg import IcebergSource

NOW = datetime(2026, 11, 21, tzinfo=UTC)
_GIVING_KINDS = {"snapshot_diff", "lineage_upserts"}


def _stated(kind: str) -> list[Any]:
    """What the answers state by hand; what needs a whole pipeline has a test of its own."""
    return [
        question(case, number, stated)
        for case in CASES
        for number, stated in enumerate(expected(case)["expect"].get(kind, []))
        if "event_time_column" not in stated
    ]


def _read(case: str, stated: Mapping[str, Any]) -> None:
    """Ask what the answer says is refused, by the key that it names."""
    for key, ask in ASKED.items():
        if key in stated:
            ask(case, stated)
            return
    golden(case).changes(stated["read_mode"])


def _window(case: str, stated: Mapping[str, Any]) -> None:
    read = {"on_non_append": stated["on_non_append"]}
    golden(case).changes("append", stated["start_exclusive"], stated["end_inclusive"], read=read)


def _bare_start(case: str, stated: Mapping[str, Any]) -> None:
    golden(case).source(start=stated["options"]["start_snapshot_id"])


def _configured_start(case: str, stated: Mapping[str, Any]) -> None:
    branch = {"branch": stated["branch"]} if "branch" in stated else {}
    source = golden(case).source(start={"after": stated["start_snapshot_id_exclusive"]}, **branch)
    source.timeline.first_checkpoint(source.timeline.pin(NOW))


def _start_time(case: str, stated: Mapping[str, Any]) -> None:
    time = datetime.fromtimestamp(stated["start_timestamp_inclusive"] / 1000, UTC)
    source = golden(case).source(
        start={"from": time}, on_truncated_history=stated["on_truncated_history"]
    )
    source.timeline.first_checkpoint(source.timeline.pin(NOW))


def _from_cursor(case: str, stated: Mapping[str, Any]) -> None:
    branch = {"branch": stated["branch"]} if "branch" in stated else {}
    read: dict[str, Any] = {"mode": stated.get("read_mode", "append")}
    if _GIVING_KINDS.intersection(stated.get("policies", ())):
        # An append does not offer them: its rows have no kind.
        read = {"mode": "changelog", "columns": ["_change_type"]}
    source = golden(case).source(read=read, **branch)
    _take(source, Instant(str(stated["cursor"]), NOW, stated.get("cursor_sequence_number")))


def _take(source: IcebergSource, cursor: Instant) -> None:
    pin = source.timeline.pin(NOW)
    instants = source.timeline.instants(pin, cursor)
    source.slicing.units(pin, InstantRange(cursor, instants[-1]))


ASKED: Mapping[str, Callable[[str, Mapping[str, Any]], None]] = {
    "start_exclusive": _window,
    "options": _bare_start,
    "start_snapshot_id_exclusive": _configured_start,
    "start_timestamp_inclusive": _start_time,
    "cursor": _from_cursor,
    "as_of_timestamp": lambda case, stated: golden(case).changes(
        "snapshot", as_of_timestamp=stated["as_of_timestamp"]
    ),
    "branch": lambda case, stated: golden(case).changes("snapshot", branch=stated["branch"]),
}


@pytest.mark.parametrize(("case", "stated"), _stated("errors"))
def test_question_without_an_answer_is_refused_by_its_own_error(
    case: str, stated: Mapping[str, Any]
) -> None:
    name = stated["error"].partition("(")[0]

    with pytest.raises(errors.IcebergSourceError) as refused:
        _read(case, stated)

    assert type(refused.value).__name__ == name
    for policy in set(stated.get("policies", [])) - {"fail"}:
        assert policy in str(refused.value)
    if stated.get("common_ancestor"):
        assert str(stated["common_ancestor"]) in str(refused.value)


def test_files_without_event_time_bounds_fail_a_plan_that_wants_them(tmp_path: Path) -> None:
    case = "no_metrics_v2"
    (stated,) = expected(case)["expect"]["errors"]
    event_time = {
        "column": stated["event_time_column"],
        "on_missing_bounds": stated["on_missing_bounds"],
    }

    with pytest.raises(errors.StatsMissing):
        StagedReads(tmp_path, LocalExecutor(1)).preview(
            golden(case).config(), event_time=event_time
        )


def test_pipeline_that_starts_at_an_expired_state_is_refused_as_a_read_is(tmp_path: Path) -> None:
    read = {"mode": "changelog", "columns": ["id", "v", "_change_type"]}
    changelog = {"start": "earliest", "read": read}
    pipeline = GoldenPipeline("expired_head_v2", tmp_path, changelog)

    with pytest.raises(errors.ChangelogParentMissing) as refused:
        pipeline.take(8)
    with pytest.raises(errors.ChangelogParentMissing) as told:
        golden("expired_head_v2").changes("changelog")

    assert str(refused.value) == str(told.value)


@pytest.mark.parametrize(("case", "stated"), _stated("cursor"))
def test_cursor_whose_child_is_kept_goes_on_and_another_does_not(
    case: str, stated: Mapping[str, Any]
) -> None:
    source = golden(case).source()
    cursor = Instant(str(stated["cursor"]), NOW)

    if "append_reads" not in stated:
        with pytest.raises(errors.CursorExpired):
            source.timeline.instants(source.timeline.pin(NOW), cursor)
        return
    instants = source.timeline.instants(source.timeline.pin(NOW), cursor)

    assert [int(item.id) for item in instants] == stated["append_reads"]


@pytest.mark.parametrize("case", [question(case) for case in READABLE])
def test_cursor_at_the_head_has_nothing_to_read(case: str) -> None:
    source = golden(case).source()
    pin = source.timeline.pin(NOW)

    assert pin.head is None or source.timeline.instants(pin, pin.head) == ()


@pytest.mark.parametrize(("case", "stated"), _stated("runs"))
def test_run_over_a_table_without_snapshots_is_empty(case: str, stated: Mapping[str, Any]) -> None:
    source = golden(case).source()

    assert source.timeline.pin(NOW).head is None
    assert golden(case).changes(stated["read_mode"]).num_rows == 0


@pytest.mark.parametrize("case", [question(case) for case in READABLE])
def test_start_from_a_time_is_the_oldest_ancestor_at_or_after_it(case: str) -> None:
    parents = {item["snapshot_id"]: item["parent_id"] for item in expected(case)["snapshots"]}
    for asked in expected(case).get("as_of", []):
        time = datetime.fromtimestamp(asked["timestamp_ms"] / 1000, UTC)
        source = golden(case).source(start={"from": time})
        pin = source.timeline.pin(NOW)
        if "oldest_ancestor_error" in asked:
            with pytest.raises(errors.HistoryTruncated):
                source.timeline.first_checkpoint(pin)
            continue
        oldest = asked["oldest_ancestor_at_or_after"]
        checkpoint = source.timeline.first_checkpoint(pin)
        # Nothing at or after the time: the run begins behind the head and waits (ICE-2.14).
        after = (pin.head and int(pin.head.id)) if oldest is None else parents[oldest]
        assert (checkpoint and int(checkpoint.id)) == after
