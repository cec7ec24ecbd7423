"""Rows that arrive between gate and commit, and decisions on content that is no longer all."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from interrupting import Interrupting
from small_lake import NOW, SmallLake, day, decide, load, local, publish
from tidegate.errors import DecisionRefused, NotHeld, PublicationLapsed
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

GATE_RECORD = r"\.gate\.json$"
COMMIT_PLAN = r"/1-[0-9a-f-]+\.json$"
HOLDING = [{"name": "sane", "where": "amount < 1000", "on_failure": "hold"}]


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@dataclass(frozen=True)
class WhileReading(LocalStorage):
    """A storage that lets something else happen, once, when a file is read."""

    pattern: str = ""
    happens: list[Callable[[], Any]] = field(default_factory=list, hash=False)

    def read_bytes(self, path: str) -> bytes:
        if re.search(self.pattern, path) and self.happens:
            self.happens.pop()()
        return super().read_bytes(path)


def held(lake: SmallLake) -> Pipeline:
    """A pipeline whose first day its rows hold."""
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    return pipeline


def test_commit_after_new_rows_came_lapses_with_their_number(lake: SmallLake) -> None:
    lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    proposal = pipeline.propose(day(1), "cli", NOW)
    assert proposal is not None
    pipeline.gate(day(1), proposal.digest, "cli", NOW)
    lake.commit({1: 3})
    load(pipeline)

    with pytest.raises(PublicationLapsed, match=r"\+3 rows since"):
        pipeline.commit(day(1), proposal.digest, "cli", NOW)

    assert lake.ids() == {}
    assert lake.listed_ids() == {}
    again = pipeline.propose(day(1), "cli", NOW)
    assert again is not None
    assert (again.rows, again.lapsed) == (8, "+3 rows since")


@pytest.mark.on_disk
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(GATE_RECORD, id="after the gate"),
        pytest.param(COMMIT_PLAN, id="after the commit plan"),
        pytest.param(r"/part-[^/]+$", id="while files move"),
    ],
)
def test_publish_while_rows_arrive_commits_all_of_them(lake: SmallLake, pattern: str) -> None:
    ids = lake.commit({1: 5, 2: 1})[:5]
    load(lake.pipeline())

    def arrive() -> None:
        ids.extend(lake.commit({1: 3}))
        load(lake.pipeline())

    publish(lake.pipeline(LocalStorage(Interrupting(pattern=pattern, happens=[arrive]))))
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.on_disk
def test_hold_while_rows_arrive_is_checked_again_with_them(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    load(lake.pipeline())

    def arrive() -> None:
        lake.commit({1: 3})
        load(lake.pipeline())

    calls = Interrupting(pattern=GATE_RECORD, happens=[arrive])
    outcomes = publish(lake.pipeline(LocalStorage(calls)))

    assert [item.state for item in outcomes] == ["held", "pending"]
    entry = lake.pipeline().ledger.publications.proposed(day(1))
    assert entry is not None
    assert entry.rows == 8


def test_approved_content_goes_out_as_shown_and_what_came_since_is_checked_after_it(
    lake: SmallLake,
) -> None:
    lake.keys = {"rows": HOLDING}
    shown = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    decide(pipeline, day(1), comment="known")
    more = lake.commit({1: 3}, amount=7000)
    load(pipeline)

    first = publish(pipeline)

    assert [item.state for item in first] == ["committed", "pending"]
    assert lake.ids() == {"dt=2026-02-01": shown}
    assert pipeline.ledger.partitions.get(day(1)).name == "late"
    assert [item.late for item in pipeline.ledger.contributions.to(day(1))] == [False, False]
    # The new rows break the rule as well: what was approved speaks for nothing but itself.
    assert [item.state for item in publish(pipeline)] == ["held", "pending"]
    assert lake.ids() == {"dt=2026-02-01": shown}
    decide(pipeline, day(1), comment="known, too")
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": shown + more}
    assert [
        item.contributions.keys() for item in pipeline.ledger.publications.revisions(day(1))
    ] == [
        {"1"},
        {"1", "2"},
    ]


def test_partition_that_grows_before_each_publish_can_be_approved(lake: SmallLake) -> None:
    """It was approved after the next rows had come: each hold would lapse for ever."""
    lake.keys = {"rows": HOLDING}
    shown = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    lake.commit({1: 3}, amount=7000)
    load(pipeline)

    decide(pipeline, day(1))
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": shown}


def test_approval_of_a_publication_that_was_held_anew_with_more_rows_is_refused(
    lake: SmallLake,
) -> None:
    pipeline = held(lake)
    shown = pipeline.explain(day(1), NOW).report.proposed_digest
    lake.commit({1: 3})
    load(pipeline)
    publish(pipeline)
    newer = pipeline.explain(day(1), NOW).report.proposed_digest

    with pytest.raises(DecisionRefused, match=f"{shown}.*replaced by {newer}"):
        pipeline.decide(
            day(1), publication=str(shown), approved=True, by="ada", comment="", now=NOW
        )

    assert [item.state for item in publish(pipeline)] == ["held", "pending"]
    assert lake.ids() == {}


@pytest.mark.on_disk
def test_approval_given_while_the_next_revision_is_worked_out_is_not_lost(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    shown = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    lake.commit({1: 3})
    load(pipeline)
    storage = WhileReading(
        pattern="/windows/000002/.*/messages/",
        happens=[lambda: decide(lake.pipeline(), day(1))],
    )

    publish(lake.pipeline(storage))

    assert storage.happens == []
    assert lake.ids() == {"dt=2026-02-01": shown}


def test_approved_content_that_a_rebuild_replaced_is_checked_anew(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    ids = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    decide(pipeline, day(1))
    planned = pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)

    assert [item.state for item in publish(pipeline)] == ["held", "pending"]
    assert lake.ids() == {}
    decide(pipeline, day(1))
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.on_disk
def test_rejection_while_its_commit_begins_is_kept_or_refused(lake: SmallLake) -> None:
    pipeline = held(lake)
    decide(pipeline, day(1))

    def reject() -> None:
        decide(lake.pipeline(), day(1), approved=False)

    calls = Interrupting(pattern=COMMIT_PLAN, happens=[reject])
    outcomes = publish(lake.pipeline(LocalStorage(calls)))

    assert [item.state for item in outcomes] == ["held", "pending"]
    assert lake.ids() == {}
    assert lake.listed_ids() == {}


@pytest.mark.on_disk
def test_rejection_after_its_commit_began_is_refused(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    ids = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    shown = decide(pipeline, day(1))
    refused: list[str] = []

    def reject() -> None:
        with pytest.raises(DecisionRefused) as caught:
            lake.pipeline().decide(
                day(1), publication=shown, approved=False, by="bob", comment="", now=NOW
            )
        refused.append(str(caught.value))

    calls = Interrupting(pattern=r"/part-[^/]+$", happens=[reject])
    publish(lake.pipeline(LocalStorage(calls)))

    assert "its commit has begun" in refused[0]
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_rejection_after_new_rows_ended_the_hold_is_refused(lake: SmallLake) -> None:
    pipeline = held(lake)
    lake.commit({1: 3})
    load(pipeline)

    with pytest.raises(NotHeld, match="pending"):
        decide(pipeline, day(1), approved=False)


def test_good_rows_after_an_approved_hold_do_not_hold_again(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    ids = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    decide(pipeline, day(1))
    publish(pipeline)
    ids += lake.commit({1: 3})
    load(pipeline)

    outcomes = publish(pipeline)

    assert [(item.state, item.revision) for item in outcomes] == [("committed", 2), ("pending", 0)]
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_held_partition_is_claimed_by_nobody(lake: SmallLake) -> None:
    pipeline = held(lake)

    state = pipeline.ledger.partitions.get(day(1))

    assert (state.pending, state.owner) == ("held", None)


def test_rejected_partition_stays_held_through_publishes_until_reopened(lake: SmallLake) -> None:
    pipeline = held(lake)
    decide(pipeline, day(1), approved=False, comment="too odd")

    assert [item.state for item in publish(pipeline)] == ["held", "pending"]
    pipeline.reopen(day(1), NOW)

    assert pipeline.ledger.partitions.get(day(1)).pending == "pending"
    assert [item.state for item in publish(pipeline)] == ["held", "pending"]


def test_answer_that_takes_another_one_back_names_who_gave_that(lake: SmallLake) -> None:
    pipeline = held(lake)
    shown = decide(pipeline, day(1))

    pipeline.decide(day(1), publication=shown, approved=False, by="bob", comment="", now=NOW)

    why = pipeline.ledger.partitions.get(day(1)).why
    assert why is not None
    assert why.detail.endswith("rejected by bob (before: approved by ada)")


@pytest.mark.on_disk
def test_check_that_lapses_leaves_the_partition_to_other_runs(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    load(lake.pipeline())
    proposal = lake.pipeline().propose(day(1), "one", NOW)
    assert proposal is not None

    def arrive() -> None:
        lake.commit({1: 3})
        load(lake.pipeline())

    storage = LocalStorage(Interrupting(pattern=GATE_RECORD, happens=[arrive]))
    with pytest.raises(PublicationLapsed):
        lake.pipeline(storage).gate(day(1), proposal.digest, "one", NOW)

    found = lake.pipeline().propose(day(1), "other", NOW)
    assert found is not None
    assert found.rows == 8
