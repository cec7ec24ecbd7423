"""No step brings a partition out before its turn, whoever skipped the step that waits for it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from interrupting import Interrupting
from small_lake import NOW, SCHEMA, SmallLake, day, decide, known, load, publish
from tidegate.errors import NotCommittable
from tidegate.model.partition import Partition
from tidegate.model.publication import Override
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.run import PublishOutcome
    from tidegate.pipeline import Pipeline

COMMIT_PLAN = r"/1-[0-9a-f-]+\.json$"
HOLDING = [{"name": "sane", "where": "amount < 1000", "on_failure": "hold"}]
FINAL = Override("ada", NOW, "the shop was closed")


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


class DiedHere(BaseException):
    """The process ends."""


def die() -> None:
    raise DiedHere


def publish_day(pipeline: Pipeline, override: Override | None = None) -> PublishOutcome:
    return pipeline.publish(day(1), "cli", NOW, override, by_command=True)


def marker(lake: SmallLake, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lake.target / f"{day(number)}" / "_SUCCESS").read_text())
    return found


def test_proposal_before_the_partition_is_over_is_refused_and_claims_nothing(
    lake: SmallLake,
) -> None:
    lake.commit({1: 5})
    pipeline = lake.pipeline()
    load(pipeline)

    with pytest.raises(NotCommittable, match=r"WATERMARK_BEHIND: .*must pass 2026-02-02 00:00"):
        pipeline.propose(day(1), "cli", NOW)

    assert pipeline.ledger.publications.proposed(day(1)) is None
    assert pipeline.ledger.partitions.get(day(1)).owner is None


def test_commit_whose_turn_was_put_off_since_the_proposal_is_refused(lake: SmallLake) -> None:
    lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    proposal = pipeline.propose(day(1), "cli", NOW)
    assert proposal is not None
    pipeline.gate(day(1), proposal.digest, "cli", NOW)
    waiting = lake.pipeline(commit={"delay": "2d"})

    with pytest.raises(NotCommittable, match="WATERMARK_BEHIND"):
        waiting.commit(day(1), proposal.digest, "cli", NOW)

    assert lake.ids() == {}
    assert pipeline.ledger.partitions.get(day(1)).owner is None


def test_partition_published_as_final_says_who_overruled_what_and_why(lake: SmallLake) -> None:
    ids = lake.commit({1: 5})
    pipeline = lake.pipeline()
    load(pipeline)

    outcome = publish_day(pipeline, FINAL)

    assert (outcome.state, outcome.revision) == ("committed", 1)
    assert lake.ids() == {"dt=2026-02-01": ids}
    told = marker(lake)["override"]
    assert (told["by"], told["comment"]) == ("ada", "the shop was closed")
    assert told["overruled"].startswith("WATERMARK_BEHIND: watermark 2026-02-01 00:05 UTC must")
    said = pipeline.explain(day(1), NOW).revisions[-1].override
    assert said is not None
    assert (said.by, said.at, said.overruled) == ("ada", NOW, told["overruled"])


def test_final_where_the_turn_has_come_overrules_nothing(lake: SmallLake) -> None:
    lake.commit({1: 5, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)

    publish_day(pipeline, FINAL)

    assert marker(lake)["override"] is None


def test_final_partition_that_the_gate_holds_still_waits_for_a_person(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    ids = lake.commit({1: 5}, amount=5000)
    pipeline = lake.pipeline()
    load(pipeline)

    held = publish_day(pipeline, FINAL)

    assert held.state == "held"
    assert lake.ids() == {}
    decide(pipeline, day(1))
    assert [item.state for item in publish(pipeline)] == ["committed"]
    assert lake.ids() == {"dt=2026-02-01": ids}
    assert marker(lake)["override"]["by"] == marker(lake)["approval"]["by"] == "ada"


def test_rows_after_a_final_revision_wait_for_their_turn(lake: SmallLake) -> None:
    ids = lake.commit({1: 5})
    pipeline = lake.pipeline()
    load(pipeline)
    publish_day(pipeline, FINAL)
    more = lake.commit({1: 3})
    load(pipeline)

    assert [item.state for item in publish(pipeline)] == ["pending"]
    assert lake.ids() == {"dt=2026-02-01": ids}
    lake.commit({2: 1})
    load(pipeline)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": ids + more}
    assert marker(lake)["override"] is None


@pytest.mark.parametrize("reason", ["no policy", "default partition"])
def test_partition_whose_turn_never_comes_is_published_by_command_alone(
    lake: SmallLake, reason: str
) -> None:
    if reason == "no policy":
        lake.keys = {"commit": {"policies": []}}
        lake.commit({1: 5, 2: 1})
        target = day(1)
    else:
        row = pa.table({"id": [7], "at": [None], "amount": [1]}, SCHEMA)
        lake.table.append(row, snapshot_properties={"known-at": known(0.5).isoformat()})
        target = Partition((("dt", None),))
    pipeline = lake.pipeline()
    load(pipeline)

    publish(pipeline)
    assert pipeline.ledger.partitions.get(target).pending == "pending"
    outcome = pipeline.publish(target, "cli", NOW, by_command=True)

    assert outcome.state == "committed"
    assert len(list((lake.target / target.path).glob("part-*"))) == 1
    assert pipeline.ledger.publications.revisions(target)[-1].override is None


@pytest.mark.on_disk
def test_plan_of_a_commit_that_died_before_it_was_prepared_is_not_used_for_other_policies(
    lake: SmallLake,
) -> None:
    lake.commit({1: 5, 2: 1})
    load(lake.pipeline())
    calls = Interrupting(pattern=COMMIT_PLAN, happens=[die])
    with pytest.raises(DiedHere):
        publish(lake.pipeline(LocalStorage(calls)))

    publish(lake.pipeline(commit={"marker": {"name": "_DONE"}}))

    beside = {path.name for path in (lake.target / "dt=2026-02-01").iterdir()}
    assert {name for name in beside if not name.startswith("part-")} == {"_DONE"}


@pytest.mark.on_disk
def test_plan_of_a_commit_that_died_does_not_tell_of_an_earlier_approval(lake: SmallLake) -> None:
    lake.keys = {"rows": HOLDING}
    lake.commit({1: 5, 2: 1}, amount=5000)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    decide(pipeline, day(1), comment="a sale")
    calls = Interrupting(pattern=COMMIT_PLAN, happens=[die])
    with pytest.raises(DiedHere):
        publish(lake.pipeline(LocalStorage(calls)))
    decide(pipeline, day(1), approved=False, comment="no, a mistake")
    decide(pipeline, day(1), comment="it was a sale, I asked")

    publish(pipeline)

    assert marker(lake)["approval"]["comment"] == "it was a sale, I asked"
    assert len(list((lake.work / "publications" / "dt=2026-02-01").glob("1-*[0-9a-f].json"))) >= 2


@pytest.mark.on_disk
def test_commit_that_died_after_it_was_prepared_is_finished_as_it_was_written(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 5, 2: 1})[:5]
    load(lake.pipeline())
    calls = Interrupting(pattern=r"/part-[^/]+$", happens=[die])
    with pytest.raises(DiedHere):
        publish(lake.pipeline(LocalStorage(calls)))

    publish(lake.pipeline(commit={"marker": {"name": "_DONE"}}), now=NOW + timedelta(hours=2))

    assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.on_disk
@pytest.mark.parametrize("rows", [2, 0], ids=["rows that wait", "nothing"])
def test_publish_that_finishes_a_revision_tells_it_whatever_follows(
    lake: SmallLake, rows: int
) -> None:
    lake.keys = {"commit": {"trigger": "process-time", "delay": "1h"}}
    ids = lake.commit({1: 5})
    load(lake.pipeline())
    calls = Interrupting(pattern=r"/part-[^/]+$", happens=[die])
    first = NOW + timedelta(hours=2)
    with pytest.raises(DiedHere):
        lake.pipeline(LocalStorage(calls)).publish(day(1), "cli", first)
    if rows:
        lake.commit({1: rows})
        load(lake.pipeline(), now=first)

    outcome = lake.pipeline().publish(day(1), "cli", first)

    assert (outcome.state, outcome.revision) == ("committed", 1)
    assert lake.ids() == {"dt=2026-02-01": ids}
    assert lake.pipeline().ledger.partitions.get(day(1)).owner is None


@pytest.mark.on_disk
def test_publish_that_finishes_a_revision_goes_on_with_what_came_since(lake: SmallLake) -> None:
    ids = lake.commit({1: 5, 2: 1})[:5]
    load(lake.pipeline())
    calls = Interrupting(pattern=r"/part-[^/]+$", happens=[die])
    with pytest.raises(DiedHere):
        publish(lake.pipeline(LocalStorage(calls)))
    ids += lake.commit({1: 2})
    load(lake.pipeline())

    outcome = lake.pipeline().publish(day(1), "cli", NOW)

    assert (outcome.state, outcome.revision, outcome.rows) == ("committed", 2, 7)
    assert lake.ids() == {"dt=2026-02-01": ids}
