"""`source.start` resolves to the instant before the first change it asks for (ICE-2.11–2.16)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from golden_iceberg import answers, golden
from tidegate.errors import (
    ChangelogParentMissing,
    EmptyTable,
    HistoryTruncated,
    InstantNotFound,
    SnapshotNotFound,
    StartNotAncestor,
)

if TYPE_CHECKING:
    from tidegate.model.instant import Instant

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _checkpoint(case: str, start: Any) -> Instant | None:
    source = golden(case).source(start=start)
    return source.timeline.first_checkpoint(source.timeline.pin(NOW))


@pytest.mark.parametrize("start", ["full", "earliest"])
def test_start_of_a_whole_history_is_the_beginning(start: str) -> None:
    assert _checkpoint("append_v2", start) is None


def test_earliest_of_a_cut_history_begins_after_the_expired_parent() -> None:
    checkpoint = _checkpoint("expired_head_v2", "earliest")

    stated = answers("expired_head_v2")["expect"]["cursor"][0]
    assert checkpoint
    assert int(checkpoint.id) == stated["cursor"]


def test_latest_begins_after_the_head() -> None:
    checkpoint = _checkpoint("append_v2", "latest")

    assert checkpoint
    assert int(checkpoint.id) == answers("append_v2")["lineage"][-1]


def test_latest_inclusive_begins_before_the_head() -> None:
    checkpoint = _checkpoint("append_v2", "latest_inclusive")

    assert checkpoint
    assert int(checkpoint.id) == answers("append_v2")["lineage"][-2]


def test_latest_inclusive_of_a_cut_history_begins_after_the_expired_parent() -> None:
    checkpoint = _checkpoint("expired_lineage_v3", "latest_inclusive")

    parent = next(iter(answers("expired_lineage_v3")["snapshots"]))["parent_id"]
    assert checkpoint
    assert int(checkpoint.id) == parent


@pytest.mark.parametrize("side", ["after", "from"])
def test_tag_starts_on_the_side_that_is_said(side: str) -> None:
    first, second, *_ = answers("branches_v2")["lineage"]

    checkpoint = _checkpoint("branches_v2", {side: "first_tag"})

    assert checkpoint
    assert int(checkpoint.id) == (second if side == "after" else first)


def test_time_before_a_cut_history_starts_at_the_oldest_where_that_is_wanted() -> None:
    source = golden("expired_head_v2").source(
        start={"from": "1970-01-01T00:00:00Z"}, on_truncated_history="oldest"
    )
    pin = source.timeline.pin(NOW)

    following = source.timeline.instants(pin, source.timeline.first_checkpoint(pin))

    assert [int(item.id) for item in following] == answers("expired_head_v2")["lineage"]


def test_after_and_from_an_id_differ_by_that_snapshot() -> None:
    first, second, *_ = answers("append_v2")["lineage"]

    after, inclusive = (
        _checkpoint("append_v2", {"after": second}),
        _checkpoint("append_v2", {"from": second}),
    )

    assert after
    assert inclusive
    assert (int(after.id), int(inclusive.id)) == (second, first)
    assert _checkpoint("append_v2", {"from": first}) is None


def _asked() -> list[Any]:
    return [
        pytest.param(case, asked, id=f"{case}-{number}")
        for case in ("append_v2", "rollback_v2", "expired_head_v2", "expired_middle_v2")
        for number, asked in enumerate(answers(case)["as_of"])
    ]


@pytest.mark.parametrize(("case", "asked"), _asked())
def test_from_a_time_begins_where_the_library_says(case: str, asked: dict[str, Any]) -> None:
    moment = datetime.fromtimestamp(asked["timestamp_ms"] / 1000, tz=UTC).isoformat()
    source = golden(case).source(start={"from": moment})
    pin = source.timeline.pin(NOW)

    if "oldest_ancestor_error" in asked:
        with pytest.raises(HistoryTruncated):
            source.timeline.first_checkpoint(pin)
        return
    checkpoint = source.timeline.first_checkpoint(pin)
    following = source.timeline.instants(pin, checkpoint)
    oldest = asked.get("oldest_ancestor_at_or_after")
    assert [int(step.id) for step in following[:1]] == ([oldest] if oldest else [])


def test_after_a_time_leaves_out_the_snapshot_of_that_moment() -> None:
    source = golden("append_v2").source()
    first, second, *_ = source.timeline.instants(source.timeline.pin(NOW), None)

    assert _checkpoint("append_v2", {"after": second.time.isoformat()}) == second
    earlier = second.time - timedelta(milliseconds=1)
    assert _checkpoint("append_v2", {"after": earlier.isoformat()}) == first


def test_time_after_the_head_waits_at_the_head() -> None:
    checkpoint = _checkpoint("append_v2", {"from": "2099-01-01T00:00:00+00:00"})

    assert checkpoint
    assert int(checkpoint.id) == answers("append_v2")["lineage"][-1]


@pytest.mark.parametrize("start", ["full", "earliest", "latest"])
def test_word_on_an_empty_table_is_the_beginning(start: str) -> None:
    assert _checkpoint("empty_table_v2", start) is None


def test_point_on_an_empty_table_is_refused() -> None:
    with pytest.raises(EmptyTable):
        _checkpoint("empty_table_v2", {"after": 42})


def test_unknown_snapshot_is_refused() -> None:
    with pytest.raises(SnapshotNotFound):
        _checkpoint("append_v2", {"after": 42})


def test_snapshot_of_another_branch_is_refused() -> None:
    side = next(
        stated["start_snapshot_id_exclusive"]
        for stated in answers("branches_v2")["expect"]["errors"]
        if stated["error"] == "StartNotAncestor"
    )

    with pytest.raises(StartNotAncestor):
        _checkpoint("branches_v2", {"after": side})


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00", "last week"], ids=["no-zone", "no-time"])
def test_text_that_is_neither_id_nor_time_is_refused(text: str) -> None:
    with pytest.raises(InstantNotFound):
        _checkpoint("append_v2", {"after": text})


@pytest.mark.parametrize("read", [{"mode": "changelog"}, {"mode": "snapshot_diff"}])
@pytest.mark.parametrize("start", ["earliest", "latest_inclusive"])
def test_start_that_needs_an_expired_state_is_refused_as_a_changelog_read_is(
    read: dict[str, str], start: str
) -> None:
    table = golden("expired_lineage_v3" if start == "latest_inclusive" else "expired_head_v2")
    source = table.source(start=start, read=read)

    with pytest.raises(ChangelogParentMissing, match=r"`source.start: \{after: \d+\}`"):
        source.timeline.first_checkpoint(source.timeline.pin(NOW))


@pytest.mark.follows("ChangelogParentMissing")
@pytest.mark.parametrize("start", ["earliest", "full"])
def test_remedies_of_a_start_whose_state_expired_work(start: str) -> None:
    table = golden("expired_head_v2")
    first = next(iter(answers("expired_head_v2")["lineage"]))
    remedies = {"earliest": {"after": first}, "full": "full"}
    source = table.source(start=remedies[start], read={"mode": "changelog"})
    pin = source.timeline.pin(NOW)

    checkpoint = source.timeline.first_checkpoint(pin)

    assert (checkpoint and int(checkpoint.id)) == (first if start == "earliest" else None)
    assert source.timeline.instants(pin, checkpoint)


def test_earliest_after_an_expired_state_goes_on_by_the_policy_that_is_said() -> None:
    source = golden("expired_head_v2").source(
        start="earliest", read={"mode": "changelog"}, on_expired_cursor="from_oldest"
    )
    pin = source.timeline.pin(NOW)

    assert source.timeline.instants(pin, source.timeline.first_checkpoint(pin))
