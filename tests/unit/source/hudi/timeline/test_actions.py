"""The actions of a timeline are read from the names of its files."""

from __future__ import annotations

from tidegate.source.hudi.timeline.actions import ActiveTimeline

ONE, TWO, THREE = "20260101000000001", "20260101000000002", "20260101000000003"


def states(timeline: ActiveTimeline) -> dict[tuple[str, str], str | None]:
    return {(it.requested, it.kind): it.completed for it in timeline.actions}


def test_first_layout_has_requested_times_only() -> None:
    names = [f"{ONE}.commit", f"{ONE}.commit.requested", f"{ONE}.inflight", f"{TWO}.inflight"]

    found = ActiveTimeline.parse(names, 1)

    assert states(found) == {(ONE, "commit"): ONE, (TWO, "commit"): None}
    assert list(found.pending) == [TWO]


def test_second_layout_has_completion_times() -> None:
    names = [f"{ONE}_{THREE}.deltacommit", f"{ONE}.deltacommit.inflight", f"{TWO}_{TWO}.commit"]

    found = ActiveTimeline.parse(names, 2)

    assert [it.requested for it in found.done] == [TWO, ONE]


def test_done_service_is_the_one_that_was_pending() -> None:
    names = [f"{ONE}.compaction.requested", f"{ONE}.compaction.inflight", f"{ONE}_{TWO}.commit"]

    (action,) = ActiveTimeline.parse(names, 2).actions

    assert (action.kind, action.service, action.is_done) == ("commit", "compaction", True)


def test_other_files_are_ignored() -> None:
    names = ["hoodie.properties", f".{ONE}.commit.crc", "archived", f"{ONE}_{TWO}.commit"]

    assert ActiveTimeline.parse(names, 1).actions == ()


def test_savepoint_of_a_commit_is_another_action_at_its_time() -> None:
    names = [f"{ONE}.commit", f"{ONE}.savepoint", f"{TWO}.commit"]

    found = ActiveTimeline.parse(names, 1)

    assert list(found.writes) == [ONE, TWO]
    # What a savepoint holds stays when its neighbours are archived (HUDI-T11).
    assert found.first == TWO


def test_everything_before_the_first_action_is_committed() -> None:
    found = ActiveTimeline.parse([f"{TWO}.commit", f"{THREE}.deltacommit.inflight"], 1)

    assert [found.is_committed(it) for it in (ONE, TWO, THREE)] == [True, True, False]


def test_write_that_was_rolled_back_is_not_committed() -> None:
    found = ActiveTimeline.parse([f"{ONE}.commit", f"{THREE}.commit"], 1)

    assert not found.is_committed(TWO)
