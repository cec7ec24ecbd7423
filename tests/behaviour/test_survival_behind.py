"""What the files know more than a ledger from a backup, of windows and partitions long settled."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from small_lake import NOW, SmallLake, day, decide, load, local, publish
from tidegate.errors import LedgerBehind
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

FIRST = "dt=2026-02-01"
NARROW = {"source": {"read": {"filter": "id > 1"}}}
HOLDS = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def back_up(lake: SmallLake) -> Callable[[], None]:
    """Copy the ledger; what is given puts the copy in its place."""
    backup = lake.root / "backup"
    backup.mkdir()
    for path in lake.root.glob("ledger.db*"):
        shutil.copy(path, backup / path.name)

    def put_back() -> None:
        for path in lake.root.glob("ledger.db*"):
            path.unlink()
        for path in backup.iterdir():
            shutil.copy(path, lake.root / path.name)

    return put_back


def replay(pipeline: Pipeline, sequence: int) -> None:
    planned = pipeline.replay(sequence, Run("replay", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def go_on(lake: SmallLake) -> list[int]:
    """Take in another day, so that the ledger gives numbers that it gave before it went back."""
    ids = lake.commit({2: 1, 3: 1})
    for _ in range(3):
        load(lake.pipeline())
        lake.pipeline().ledger.publications.reserve(day(3), None)
    return ids


@pytest.mark.follows("LedgerBehind")
@pytest.mark.parametrize("goes_on", [False, True], ids=["at once", "after another load"])
@pytest.mark.parametrize("kind", ["load", "rebuild"])
def test_lost_replay_of_an_older_window_is_missed_by_the_partition_that_it_brought_rows_for(
    lake: SmallLake, kind: str, goes_on: bool
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    if kind == "rebuild":
        pipeline = lake.pipeline()
        planned = pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)
        pipeline.finish_load(planned, NOW, local)
    publish(lake.pipeline())
    older = lake.pipeline().ledger.windows.all()[-1].window.sequence
    ids += lake.commit({1: 2})
    load(lake.pipeline())
    put_back = back_up(lake)
    replay(lake.pipeline(**NARROW), older)
    put_back()
    if goes_on:
        go_on(lake)
    files = lake.stamps()

    with pytest.raises(LedgerBehind, match=f"window {older} announced with plan"):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.stamps() == files
    # What the message says to do.
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids[1:]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.follows("LedgerBehind")
def test_lost_replay_is_missed_by_the_commit_of_what_was_checked_before_it(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    lake.commit({2: 1})
    load(lake.pipeline())
    proposal = lake.pipeline().propose(day(1), "cli", NOW)
    assert proposal is not None
    lake.pipeline().gate(day(1), proposal.digest, "cli", NOW)
    put_back = back_up(lake)
    replay(lake.pipeline(**NARROW), 1)
    put_back()

    with pytest.raises(LedgerBehind, match="window 1 announced with plan"):
        lake.pipeline().commit(day(1), proposal.digest, "cli", NOW)

    assert lake.listed_ids() == {}
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids[1:]


def planned_before(lake: SmallLake) -> Callable[[], None]:
    """Lose a replay of the first window that was planned before the backup, and announced after."""
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    lake.commit({2: 1})
    load(lake.pipeline())
    pipeline = lake.pipeline(**NARROW)
    planned = pipeline.replay(1, Run("replay", "cli"), NOW)
    put_back = back_up(lake)
    pipeline.finish_load(planned, NOW, local)
    return put_back


LOOKS: dict[str, Callable[[Pipeline], Any]] = {
    "publish": lambda pipeline: pipeline.publish(day(1), "cli", NOW),
    "replay": lambda pipeline: replay(pipeline, 1),
    "gc": lambda pipeline: pipeline.garbage(NOW, NOW - NOW),
}


@pytest.mark.parametrize("goes_on", [False, True], ids=["at once", "after another load"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_lost_replay_is_missed_though_the_ledger_knows_its_plan(
    lake: SmallLake, look: Callable[[Pipeline], Any], goes_on: bool
) -> None:
    put_back = planned_before(lake)
    put_back()
    if goes_on:
        go_on(lake)

    with pytest.raises(LedgerBehind, match="window 1 announced with plan"):
        look(lake.pipeline())

    assert any("window 1 announced" in text for text in lake.pipeline().findings())


def test_first_number_of_a_restored_ledger_is_missed_where_it_is_lost(lake: SmallLake) -> None:
    put_back = planned_before(lake)
    put_back()
    lake.pipeline().restore_ledger()
    shutil.rmtree(lake.root / "backup")
    put_back = back_up(lake)
    replay(lake.pipeline(), 1)
    put_back()

    with pytest.raises(LedgerBehind, match="window 1 announced with plan"):
        lake.pipeline().publish(day(1), "cli", NOW)


def test_first_decision_on_a_restored_ledger_is_missed_where_it_is_lost(lake: SmallLake) -> None:
    approved(lake)
    lake.pipeline().restore_ledger()
    put_back = back_up(lake)
    decide(lake.pipeline(), day(1), approved=False)
    put_back()

    with pytest.raises(LedgerBehind, match=r"\.decision\.json"):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.listed_ids() == {}


def approved(lake: SmallLake) -> str:
    """Leave a day approved that the gate had held; the digest of what was shown."""
    lake.keys = HOLDS
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    return decide(lake.pipeline(), day(1))


LOST: dict[str, Callable[[Pipeline], Any]] = {
    "reject": lambda pipeline: decide(pipeline, day(1), approved=False),
    "reopen": lambda pipeline: pipeline.reopen(day(1), NOW),
}


@pytest.mark.follows("LedgerBehind")
@pytest.mark.parametrize("goes_on", [False, True], ids=["at once", "after another load"])
@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_lost_decision_is_missed_before_what_it_kept_back_goes_out(
    lake: SmallLake, lost: Callable[[Pipeline], Any], goes_on: bool
) -> None:
    approved(lake)
    put_back = back_up(lake)
    lost(lake.pipeline())
    put_back()
    if goes_on:
        lake.commit({1: 1})
        go_on(lake)

    with pytest.raises(LedgerBehind, match=rf"publications/{FIRST}/1-.*\.decision\.json"):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.listed_ids() == {}
    assert any(".decision.json" in text for text in lake.pipeline().findings())
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())
    assert lake.pipeline().ledger.partitions.get(day(1)).pending == "held"
    assert lake.listed_ids() == {}
    assert list(lake.pipeline().findings()) == []


def test_lost_decision_is_missed_by_a_gate_that_would_number_its_verdict_as_it(
    lake: SmallLake,
) -> None:
    digest = approved(lake)
    lake.pipeline().reopen(day(1), NOW)
    lake.pipeline().propose(day(1), "cli", NOW)
    put_back = back_up(lake)
    lake.pipeline().gate(day(1), digest, "cli", NOW)
    decide(lake.pipeline(), day(1), approved=False)
    put_back()

    with pytest.raises(LedgerBehind):
        lake.pipeline().gate(day(1), digest, "cli", NOW)

    assert any(".decision.json" in text for text in lake.pipeline().findings())


@pytest.mark.parametrize("step", ["commit", "approve", "reject", "reopen"])
def test_lost_decision_is_missed_by_each_step_that_relies_on_decisions(
    lake: SmallLake, step: str
) -> None:
    digest = approved(lake)
    decide(lake.pipeline(), day(1), approved=step != "approve")
    put_back = back_up(lake)
    decide(lake.pipeline(), day(1), approved=False)
    put_back()
    steps: dict[str, Callable[[Pipeline], Any]] = {
        "commit": lambda pipeline: pipeline.commit(day(1), digest, "cli", NOW),
        "approve": lambda pipeline: decide(pipeline, day(1)),
        "reject": lambda pipeline: decide(pipeline, day(1), approved=False),
        "reopen": lambda pipeline: pipeline.reopen(day(1), NOW),
    }

    with pytest.raises(LedgerBehind):
        steps[step](lake.pipeline())

    assert lake.listed_ids() == {}


@pytest.mark.parametrize("lost", ["first", "second"])
def test_lost_commit_is_missed_where_its_marker_was_renamed_since(
    lake: SmallLake, lost: str
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    if lost == "second":
        publish(lake.pipeline())
        ids += lake.commit({1: 2})
        load(lake.pipeline())
    put_back = back_up(lake)
    publish(lake.pipeline())
    put_back()
    go_on(lake)
    lake.keys = {"commit": {"marker": {"name": "_DONE"}}}
    files = lake.stamps()

    with pytest.raises(LedgerBehind, match="a marker of revision"):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.stamps() == files
    lake.pipeline().restore_ledger()
    late = lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.listed_ids()[FIRST] == [*ids, *late]
    assert [path.name for path in (lake.target / FIRST).glob("_*")] == ["_DONE"]


def test_status_tells_what_commands_that_write_would_refuse(lake: SmallLake) -> None:
    lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    put_back = back_up(lake)
    publish(lake.pipeline())
    before = lake.pipeline().status(NOW)

    put_back()

    after = lake.pipeline().status(NOW)
    changed = lake.pipeline(timezone="Europe/Berlin").status(NOW)
    assert before
    assert after
    assert changed
    failed, _ = lake.pipeline().publish_all("cli", NOW)
    assert before.notes == ()
    assert [note for note in after.notes if note in str(failed.error)] == list(after.notes)
    assert len(after.notes) == 1
    assert any("timezone" in note for note in changed.notes)


def test_ledger_that_lacks_a_window_is_told_by_every_look_before_a_load(lake: SmallLake) -> None:
    lake.commit({1: 1})
    load(lake.pipeline())
    put_back = back_up(lake)
    lake.commit({2: 1, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    put_back()
    lake.commit({4: 1})
    published = lake.pipeline()

    with pytest.raises(LedgerBehind, match="window 2"):
        published.looking().preview(Run("check", "check"), NOW)
    with pytest.raises(LedgerBehind):
        published.explain(day(2), NOW)
    with pytest.raises(LedgerBehind):
        published.decide(day(2), publication="shown", approved=True, by="ada", comment="", now=NOW)
    with pytest.raises(LedgerBehind):
        published.reopen(day(2), NOW)


def test_commit_of_a_ledger_from_before_a_later_revision_is_refused(lake: SmallLake) -> None:
    opened = lake.pipeline(commit={"trigger": "process-time"})
    made = []
    for _ in range(2):
        lake.commit({1: 1})
        load(opened)
        publish(opened)
        made.append(opened._contents.standing(day(1)))
    first, second = made
    assert first is not None
    assert second is not None

    opened._watch.check_commit(second)
    with pytest.raises(LedgerBehind, match="marker of revision 2 in dt=2026-02-01"):
        opened._watch.check_commit(first)
