"""Rows that arrive between gate and commit, and decisions on content that is no longer all."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from small_lake import NOW, SmallLake, day, load, publish
from tidegate.errors import NotHeld, PublicationLapsed
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GATE_RECORD = r"\.gate\.json$"
HOLDING = [{"name": "sane", "where": "amount < 1000", "on_failure": "hold"}]


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@dataclass(frozen=True)
class Interrupting(OsCalls):
    """System calls between which something else happens, once."""

    pattern: str = ""
    happens: list[Callable[[], Any]] = field(default_factory=list, hash=False)

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        if re.search(self.pattern, target) and self.happens:
            self.happens.pop()()


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
    assert not lake.target.exists()
    again = pipeline.propose(day(1), "cli", NOW)
    assert again is not None
    assert (again.rows, again.lapsed) == (8, "+3 rows since")


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(GATE_RECORD, id="after the gate"),
        pytest.param(r"/1-[0-9a-f]+\.json$", id="after the commit plan"),
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


def test_approval_of_content_that_grew_since_does_not_count(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    ids = lake.commit({1: 5, 2: 1}, amount=5000)[:5]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    pipeline.decide(day(1), approved=True, by="ada", comment="known", now=NOW)
    ids += lake.commit({1: 3})
    load(pipeline)

    held = publish(pipeline)

    assert [item.state for item in held] == ["held", "pending"]
    assert lake.ids() == {}
    pipeline.decide(day(1), approved=True, by="ada", comment="known, too", now=NOW)
    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_decision_after_the_hold_lapsed_is_refused(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    lake.commit({1: 3})
    load(pipeline)

    with pytest.raises(NotHeld, match="pending"):
        pipeline.decide(day(1), approved=True, by="ada", comment="", now=NOW)


def test_held_partition_is_claimed_by_nobody(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)

    state = pipeline.ledger.partitions.get(day(1))

    assert (state.pending, state.owner) == ("held", None)


def test_rejected_partition_stays_held_through_publishes_until_reopened(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    pipeline.decide(day(1), approved=False, by="ada", comment="too odd", now=NOW)

    assert [item.state for item in publish(pipeline)] == ["held", "pending"]
    pipeline.reopen(day(1))

    assert pipeline.ledger.partitions.get(day(1)).pending == "pending"
    assert [item.state for item in publish(pipeline)] == ["held", "pending"]
