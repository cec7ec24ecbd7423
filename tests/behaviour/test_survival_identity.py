"""What a pipeline's name stands for is compared by every verb that writes, and by restorations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from crash.scenario import ledger_content
from small_lake import NOW, SmallLake, decide, load, local, publish
from tidegate.errors import PipelineChanged
from tidegate.model.partition import Partition
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

KEYS = {"dt": "day(at)", "amount": "amount"}
OTHER_ORDER = [{"amount": "amount"}, {"dt": "day(at)"}]
CHANGES: dict[str, dict[str, Any]] = {
    "timezone": {"timezone": "Europe/Berlin"},
    "target.partition_by": {"target": {"partition_by": OTHER_ORDER}},
    "target.path": {"target": {"path": "{root}/published/elsewhere"}},
    "source": {"source": {"table": "raw.others"}},
}
HOLDS = {"rows": [{"name": "small", "where": "amount < 9", "on_failure": "hold"}]}
HELD, PENDING = (Partition((("dt", f"2026-02-{day}"), ("amount", "9"))) for day in ("01", "02"))


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"target": {"partition_by": KEYS}})


def changed(lake: SmallLake, key: str) -> Pipeline:
    text = json.dumps(CHANGES[key]).replace("{root}", str(lake.root))
    return lake.pipeline(**json.loads(text))


def half_published(lake: SmallLake) -> None:
    """Leave a partition that waits for a person, one that is pending, and a window half done."""
    lake.keys |= HOLDS
    lake.commit({1: 3, 3: 1}, amount=9)
    load(lake.pipeline())
    publish(lake.pipeline())
    del lake.keys["rows"]
    lake.commit({2: 3, 3: 1}, amount=9)
    load(lake.pipeline())


def proposed(lake: SmallLake, partition: Partition) -> str:
    found = lake.pipeline().ledger.publications.proposed(partition)
    assert found is not None
    return found.publication.digest


def announce(lake: SmallLake, key: str) -> None:
    lake.commit({2: 2}, amount=9)
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("run", "cli"), NOW)
    with local("local") as executor:
        pipeline.stage(planned[0], executor)
    changed(lake, key).announce(planned, NOW)


def gate(lake: SmallLake, key: str) -> None:
    found = lake.pipeline().propose(PENDING, "cli", NOW)
    assert found is not None
    changed(lake, key).gate(PENDING, found.digest, "cli", NOW)


def commit(lake: SmallLake, key: str) -> None:
    found = lake.pipeline().propose(PENDING, "cli", NOW)
    assert found is not None
    lake.pipeline().gate(PENDING, found.digest, "cli", NOW)
    changed(lake, key).commit(PENDING, found.digest, "cli", NOW)


def sweep(lake: SmallLake, key: str) -> None:
    pipeline = changed(lake, key)
    pipeline.sweep(pipeline.garbage(NOW.replace(year=2030), NOW - NOW))


STEPS: dict[str, Callable[[SmallLake, str], Any]] = {
    "publish": lambda lake, key: publish(changed(lake, key)),
    "publish one": lambda lake, key: changed(lake, key).publish(PENDING, "cli", NOW),
    "propose": lambda lake, key: changed(lake, key).propose(PENDING, "cli", NOW),
    "evaluate": lambda lake, key: changed(lake, key).evaluate(PENDING, NOW),
    "gate": gate,
    "commit": commit,
    "approve": lambda lake, key: decide(changed(lake, key), HELD),
    "reject": lambda lake, key: decide(changed(lake, key), HELD, approved=False),
    "reopen": lambda lake, key: changed(lake, key).reopen(HELD, NOW),
    "announce": announce,
    "gc": sweep,
    "restore": lambda lake, key: changed(lake, key).restore_ledger(),
}


@pytest.mark.parametrize("key", ["timezone", "target.partition_by"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_changed_identity_is_refused_by_every_verb_that_writes(
    lake: SmallLake, step: Callable[[SmallLake, str], Any], key: str
) -> None:
    half_published(lake)
    before = lake.stamps(), identity(lake)

    with pytest.raises(PipelineChanged, match="Change it back") as refused:
        step(lake, key)

    assert refused.value.key == key
    assert (lake.stamps(), identity(lake)) == before
    # What the message says to do.
    load(lake.pipeline())
    publish(lake.pipeline())
    ids = [5, 6, 7, *range(9, lake.made + 1)]
    assert lake.listed_ids() == lake.ids() == {"amount=9": ids}


def identity(lake: SmallLake) -> Any:
    (found,) = ledger_content(lake.root)["pipeline"]
    return found["identity"]


@pytest.mark.parametrize("key", CHANGES)
def test_changed_identity_is_a_finding(lake: SmallLake, key: str) -> None:
    half_published(lake)

    assert any(f"`{key}` was" in text for text in changed(lake, key).findings())
    assert list(lake.pipeline().findings()) == []


def lose(lake: SmallLake) -> None:
    for path in lake.root.glob("ledger.db*"):
        path.unlink()


@pytest.mark.parametrize("key", ["timezone", "target.partition_by", "source"])
def test_lost_ledger_is_not_restored_under_another_identity(lake: SmallLake, key: str) -> None:
    half_published(lake)
    publish(lake.pipeline())
    before = ledger_content(lake.root)
    lose(lake)

    with pytest.raises(PipelineChanged) as refused:
        changed(lake, key).restore_ledger()

    assert refused.value.key == key
    assert ledger_content(lake.root)["pipeline"] == []
    lake.pipeline().restore_ledger()
    assert identity(lake) == before["pipeline"][0]["identity"]
    assert lake.pipeline().ledger.partitions.get(PENDING).revision == 1


@pytest.mark.parametrize("loads", [0, 1])
def test_key_that_was_misspelled_before_the_first_load_may_be_corrected_by_a_restoration(
    lake: SmallLake, loads: int
) -> None:
    lake.keys = {"target": {"partition_by": {"dt": "month(at)"}}}
    lake.commit({1: 3, 2: 1})
    lake.pipeline().adopt(NOW)
    lake.keys = {}
    for _ in range(loads):
        load(lake.pipeline())
    lose(lake)

    lake.pipeline().restore_ledger()
    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.listed_ids() == lake.ids() == {"dt=2026-02-01": [1, 2, 3]}


def test_plan_of_an_earlier_version_says_that_it_published_in_alphabetical_order(
    lake: SmallLake,
) -> None:
    """Whatever the order in its file was, and whatever it called NULL."""
    lake.keys = {"target": {"partition_by": OTHER_ORDER}}
    half_published(lake)
    for path in lake.work.rglob("plan.json"):
        plan = json.loads(path.read_text())
        plan["config"]["target"] |= {"partition_by": KEYS, "default_partition_name": "none"}
        path.write_text(json.dumps(plan, sort_keys=True))
    lose(lake)

    with pytest.raises(PipelineChanged) as refused:
        lake.pipeline(target={"partition_by": KEYS}).restore_ledger()

    assert refused.value.key == "target.partition_by"
    lake.pipeline().restore_ledger()
