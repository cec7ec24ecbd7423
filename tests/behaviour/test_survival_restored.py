"""State that goes back in time: restored backups, restorations that die, records out of order."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from crash.scenario import ledger_content
from small_lake import NOW, SmallLake, day, decide, load, local, look_again, publish
from tidegate.errors import (
    FenceLost,
    LedgerBehind,
    LedgerLost,
    LedgerMoved,
    NumberPassed,
    StateFileLost,
)
from tidegate.ledger import numbers
from tidegate.ledger.publications import Publications
from tidegate.ledger.schema import metadata
from tidegate.model.publication import Outcome
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.model.publication import DecisionRecord
    from tidegate.pipeline import Pipeline

NARROW = {"source": {"read": {"filter": "id > 1"}}}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def save(lake: SmallLake) -> Path:
    backup = lake.root / "backup"
    backup.mkdir()
    for path in lake.root.glob("ledger.db*"):
        shutil.copy(path, backup / path.name)
    return backup


def lose(lake: SmallLake) -> None:
    for path in lake.root.glob("ledger.db*"):
        path.unlink()


def put_back(lake: SmallLake, backup: Path) -> None:
    lose(lake)
    for path in backup.iterdir():
        shutil.copy(path, lake.root / path.name)


def replay(pipeline: Pipeline, sequence: int, hour: int = 0) -> None:
    now = NOW.replace(hour=hour)
    planned = pipeline.replay(sequence, Run("replay", "cli"), now)
    pipeline.finish_load(planned, now, local)


def rebuild(pipeline: Pipeline) -> None:
    planned = pipeline.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def sweep(pipeline: Pipeline) -> None:
    pipeline.sweep(pipeline.garbage(NOW.replace(year=2030), NOW - NOW))


def take_in(lake: SmallLake, days: dict[int, int]) -> list[int]:
    ids = lake.commit(days)
    load(lake.pipeline())
    publish(lake.pipeline())
    return ids


def publish_all(pipeline: Pipeline) -> None:
    for outcome in pipeline.publish_all("cli", NOW):
        assert outcome.error is None, outcome.error


STEPS: dict[str, Callable[[Pipeline], Any]] = {
    "load": load,
    "publish": publish_all,
    "publish one": lambda pipeline: pipeline.publish(day(1), "cli", NOW),
    "replay": lambda pipeline: replay(pipeline, 1),
    "rebuild": rebuild,
    "gc": sweep,
}


@pytest.mark.follows("LedgerBehind")
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_ledger_from_a_backup_is_refused_by_every_step_and_brought_up_to_date(
    lake: SmallLake, step: Callable[[Pipeline], Any]
) -> None:
    ids = take_in(lake, {1: 3, 2: 1})[:3]
    ids += lake.commit({1: 1})
    load(lake.pipeline())
    backup = save(lake)
    ids += take_in(lake, {1: 2})
    stood, files = lake.ids(), lake.stamps()
    put_back(lake, backup)
    lake.commit({2: 1})

    with pytest.raises((LedgerBehind, AssertionError), match="fsck orders --rebuild"):
        step(lake.pipeline())

    assert lake.stamps() == files
    assert any("fsck orders --rebuild" in found for found in lake.pipeline().findings())
    lake.pipeline().restore_ledger()
    assert list(lake.pipeline().findings()) == []
    ids += take_in(lake, {1: 1, 3: 1})[:1]
    assert lake.ids()["dt=2026-02-01"] == sorted(ids)
    assert lake.listed_ids() == lake.ids()
    assert stood["dt=2026-02-01"] == ids[:-1]


def test_backup_from_before_a_commit_only_is_refused_by_that_partition(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    backup = save(lake)
    publish(lake.pipeline())
    files = lake.stamps()
    put_back(lake, backup)

    with pytest.raises(LedgerBehind, match="a marker of revision 1 in dt=2026-02-01"):
        lake.pipeline().publish(day(1), "cli", NOW)

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())
    assert lake.stamps() == files


@pytest.mark.on_disk
def test_backup_from_before_a_commit_moved_files_is_refused_inside_the_lock(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    backup = save_while_committing(lake)
    rebuild(lake.pipeline(**NARROW))
    publish(lake.pipeline(**NARROW))
    files = lake.stamps()
    put_back(lake, backup)

    with pytest.raises(LedgerBehind):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.stamps() == files
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == ids[1:]
    assert lake.listed_ids() == lake.ids()


@dataclass(frozen=True)
class Watched(OsCalls):
    """System calls, with a look before each file that is published."""

    look: Callable[[], None]

    def link(self, source: str, target: str) -> None:
        if target.endswith(".parquet"):
            self.look()
        super().link(source, target)


def save_while_committing(lake: SmallLake) -> Path:
    """Publish, and copy the ledger between the retracted marker and the first file."""
    saved: list[Path] = []

    def copy_once() -> None:
        if not saved:
            saved.append(save(lake))

    publish(lake.pipeline(LocalStorage(Watched(copy_once))))
    return saved[0]


def test_open_window_in_a_backup_is_finished_not_refused(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("run", "cli"), NOW)
    backup = save(lake)
    pipeline.finish_load(planned, NOW, local)
    put_back(lake, backup)

    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": ids}
    assert list(lake.pipeline().findings()) == []


class Died(BaseException):
    """The process ends here."""


def test_restoration_that_dies_anywhere_leaves_no_ledger_that_is_believed(
    lake: SmallLake,
) -> None:
    ids = take_in(lake, {1: 3, 2: 1})[:3]
    ids += take_in(lake, {1: 2})
    before = ledger_content(lake.root)
    backup = save(lake)
    survived = False
    for step in range(200):
        lose(lake)
        pipeline = lake.pipeline()
        left = [step]

        def die(*_given: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Died

        for name in ("before_cursor_execute", "commit"):
            event.listen(pipeline.ledger.engine, name, die)
        try:
            pipeline.restore_ledger()
            survived = True
        except Died:
            with pytest.raises((LedgerLost, LedgerBehind)):
                load(lake.pipeline())
            continue
        break
    assert survived
    assert step > 10

    look_again(lake.pipeline(), NOW)
    assert ledger_content(lake.root) == before
    ids += take_in(lake, {1: 1, 3: 1})[:1]
    assert lake.ids()["dt=2026-02-01"] == sorted(ids)
    assert lake.listed_ids() == lake.ids()
    assert backup.is_dir()


def test_other_pipelines_of_the_ledger_are_left_alone_by_a_restoration(lake: SmallLake) -> None:
    other = SmallLake(lake.root / "other", keys={"name": "others"})
    other.commit({1: 2})
    url = f"sqlite:///{lake.root}/ledger.db"
    from tidegate.pipeline import open_pipeline

    other.target.parent.mkdir()
    beside = open_pipeline(other.file("others", name="others"), ledger=url)
    load(beside)
    take_in(lake, {1: 3, 2: 1})

    def of_others() -> list[Any]:
        rows = [row for table in ledger_content(lake.root).values() for row in table]
        return [row for row in rows if "others" in {row.get("pipeline"), row.get("name")}]

    before = of_others()
    lake.pipeline().restore_ledger()

    assert before
    assert of_others() == before


def test_order_of_announces_is_restored_whatever_the_clocks_said(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline(), now=NOW.replace(hour=1))
    publish(lake.pipeline(), now=NOW.replace(hour=1))
    ids += lake.commit({1: 2})
    # A load that began first and took long is overlapped by a replay that began later.
    slow = lake.pipeline()
    planned = slow.plan(Run("slow", "cli"), NOW.replace(hour=2))
    replay(lake.pipeline(**NARROW), 1, hour=3)
    publish(lake.pipeline(**NARROW), now=NOW.replace(hour=3))
    slow.finish_load(planned, NOW.replace(hour=2), local)
    publish(lake.pipeline(**NARROW), now=NOW.replace(hour=4))
    before = ledger_content(lake.root)
    lose(lake)

    lake.pipeline(**NARROW).restore_ledger()

    look_again(lake.pipeline(**NARROW), NOW)
    after = ledger_content(lake.root)
    for table, content in before.items():
        assert after[table] == content, table
    rebuild(lake.pipeline(**NARROW))
    publish(lake.pipeline(**NARROW), now=NOW.replace(hour=5))
    assert lake.ids()["dt=2026-02-01"] == ids[1:]
    assert lake.listed_ids() == lake.ids()


def test_process_of_the_lost_ledger_can_announce_nothing_into_the_restored_one(
    lake: SmallLake,
) -> None:
    ids = take_in(lake, {1: 3, 2: 1})[:3]
    ids += lake.commit({1: 2})
    stale = lake.pipeline()
    planned = stale.plan(Run("stale", "cli"), NOW)
    lose(lake)
    lake.pipeline().restore_ledger()
    fresh = lake.pipeline()
    again = fresh.plan(Run("fresh", "fresh"), NOW)

    with pytest.raises(FenceLost):
        stale.finish_load(planned, NOW, local)

    fresh.finish_load(again, NOW, local)
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == ids
    assert lake.listed_ids() == {"dt=2026-02-01": ids}


def test_rejected_commit_whose_plan_was_written_stays_rejected(lake: SmallLake) -> None:
    holding = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline(**holding))
    publish(lake.pipeline(**holding))
    digest = decide(lake.pipeline(**holding), day(1))
    pipeline = lake.pipeline(**holding)
    event.listen(pipeline.ledger.engine, "before_cursor_execute", _die_at_prepare)
    with pytest.raises(Died):
        publish(pipeline)
    event.remove(pipeline.ledger.engine, "before_cursor_execute", _die_at_prepare)
    written = list((lake.work / "publications" / "dt=2026-02-01").glob(f"1-{digest}-*[0-9].json"))
    decide(pipeline, day(1), approved=False)
    lose(lake)

    lake.pipeline(**holding).restore_ledger()

    assert written
    assert lake.pipeline(**holding).ledger.partitions.get(day(1)).pending == "held"
    publish(lake.pipeline(**holding))
    assert lake.ids() == {}
    assert lake.listed_ids() == {}


def _die_at_prepare(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any
) -> None:
    if statement.startswith("UPDATE publication") and "prepared" in str(parameters):
        raise Died


def test_reopened_partition_is_not_let_out_by_an_older_approval(lake: SmallLake) -> None:
    holding = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline(**holding))
    publish(lake.pipeline(**holding))
    decide(lake.pipeline(**holding), day(1))
    lake.pipeline(**holding).reopen(day(1), NOW)
    lose(lake)

    lake.pipeline(**holding).restore_ledger()
    publish(lake.pipeline(**holding))

    assert lake.pipeline(**holding).ledger.partitions.get(day(1)).pending == "held"
    assert lake.ids() == {}


def test_partition_that_was_held_again_after_it_was_reopened_waits_for_the_next_decision(
    lake: SmallLake,
) -> None:
    lake.keys = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    publish(lake.pipeline())
    shown = decide(lake.pipeline(), day(1))
    lake.pipeline().reopen(day(1), NOW)
    publish(lake.pipeline())
    lose(lake)

    lake.pipeline().restore_ledger()

    assert lake.pipeline().ledger.partitions.get(day(1)).pending == "held"
    assert decide(lake.pipeline(), day(1)) == shown
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_commit_that_only_took_rows_away_is_found_and_finished(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_in(lake, {1: 3, 2: 1})
    ids = take_in(lake, {1: 2, 2: 1})[:2]
    replay(lake.pipeline(source={"read": {"filter": "id > 100"}}), 1)
    with monkeypatch.context() as patched:
        patched.setattr(Publications, "advance", _die)
        with pytest.raises(Died):
            lake.pipeline().publish(day(1), "cli", NOW)
    lose(lake)

    restored = lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert restored.unfinished == ("dt=2026-02-01",)
    revisions = lake.pipeline().ledger.publications.revisions(day(1))
    assert [item.revision for item in revisions] == [1, 2, 3]
    assert lake.ids()["dt=2026-02-01"] == ids
    assert list(lake.pipeline().findings()) == []


def _die(*_arguments: object) -> None:
    raise Died


@dataclass(frozen=True)
class NoDecisions(OsCalls):
    """System calls of a process that dies before a decision stands in its file."""

    def link(self, source: str, target: str) -> None:
        if target.endswith(".decision.json"):
            raise Died
        super().link(source, target)


@pytest.mark.on_disk
def test_reopening_that_was_not_written_down_is_not_in_the_ledger_either(lake: SmallLake) -> None:
    """Else a restored ledger would let out what was taken back."""
    lake.keys = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    decide(lake.pipeline(), day(1))
    before = ledger_content(lake.root)

    with pytest.raises(Died):
        lake.pipeline(LocalStorage(NoDecisions())).reopen(day(1), NOW)

    after = ledger_content(lake.root)
    for table in ("partition", "publication"):
        assert after[table] == before[table], table


def test_file_that_moved_with_a_commit_that_was_lost_is_judged_where_it_stands(
    lake: SmallLake,
) -> None:
    suite = lake.root / "suite.json"
    whole = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}
    suite.write_text(json.dumps({"name": "whole", "expectations": [whole]}))
    lake.keys = {"commit": {"trigger": "process-time"}, "gate": {"suite": str(suite)}}
    ids = lake.commit({1: 3})
    load(lake.pipeline())
    publish(lake.pipeline())
    shutil.rmtree(lake.work / "publications")
    (lake.target / "dt=2026-02-01" / "_SUCCESS").unlink()
    lose(lake)

    restored = lake.pipeline().restore_ledger()
    (made,) = publish(lake.pipeline())

    assert restored.revisions == 0
    assert (made.state, made.gate, made.rows) == ("committed", Outcome.PASS, 3)
    assert lake.ids() == lake.listed_ids() == {"dt=2026-02-01": ids}


def test_reopening_that_the_ledger_refused_takes_no_approval_away_from_a_restored_one(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows came since the approval, which stands as shown."""
    lake.keys = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    publish(lake.pipeline())
    shown = decide(lake.pipeline(), day(1))
    lake.commit({1: 1})
    load(lake.pipeline())

    def refuse(_self: Publications, decision: DecisionRecord) -> None:
        number = decision.number
        raise NumberPassed(pipeline="orders", subject="it", reserved=number, found=number + 1)

    with monkeypatch.context() as patched:
        patched.setattr(Publications, "reopen", refuse)
        with pytest.raises(NumberPassed):
            lake.pipeline().reopen(day(1), NOW)
    lose(lake)

    lake.pipeline().restore_ledger()

    approved = lake.pipeline().ledger.publications.approved(day(1))
    assert approved is not None
    assert approved.publication.digest == shown
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_load_of_before_a_failover_announces_nothing_into_a_window_of_the_same_number(
    lake: SmallLake,
) -> None:
    ids = take_in(lake, {1: 1, 9: 1})[:1]
    backup = save(lake)
    ids += lake.commit({1: 2})
    stale = lake.pipeline()
    planned = stale.plan(Run("stale", "airflow:x/stale"), NOW)
    with local("local") as executor:
        for item in planned:
            stale.stage(item, executor)
    put_back(lake, backup)
    ids += lake.commit({1: 3})
    load(lake.pipeline(), owner="fresh")

    with pytest.raises(FenceLost):
        stale.announce(planned, NOW)

    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == ids


def test_announce_that_never_was_is_not_believed_once_its_window_was_announced_again(
    lake: SmallLake,
) -> None:
    ids = take_in(lake, {1: 3, 2: 1})[:3]
    pipeline = lake.pipeline(**NARROW)
    planned = pipeline.replay(1, Run("dies", "cli"), NOW)
    with local("local") as executor:
        pipeline.stage(planned[0], executor)
    event.listen(pipeline.ledger.engine, "before_cursor_execute", _die_at_contributions)
    with pytest.raises(Died):
        pipeline.announce(planned, NOW)
    replay(lake.pipeline(), 1)
    publish(lake.pipeline())
    lose(lake)

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": ids}
    assert lake.listed_ids() == {"dt=2026-02-01": ids}


def _die_at_contributions(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
    if statement.startswith("DELETE FROM contribution"):
        raise Died


@pytest.mark.on_disk
def test_commit_that_ends_while_a_ledger_is_restored_is_not_overlooked(lake: SmallLake) -> None:
    take_in(lake, {1: 2, 9: 1})
    lake.commit({1: 1})
    load(lake.pipeline())
    published: list[int] = []
    fenced: list[str] = []

    @dataclass(frozen=True)
    class Beside(LocalStorage):
        """Another process publishes just before the commit plans are read, after the fences."""

        def list_files(self, root: str) -> list[str]:
            found = super().list_files(root)
            if root.endswith("/locks"):
                fenced.append(root)
            if root.endswith("/publications") and fenced and not published:
                published.append(len(publish(lake.pipeline())))
            return found

    with pytest.raises(LedgerMoved):
        lake.pipeline(Beside()).restore_ledger()

    assert lake.pipeline().ledger.partitions.get(day(1)).revision == 2
    lake.pipeline().restore_ledger()
    assert list(lake.pipeline().findings()) == []


def test_ledger_that_goes_back_when_a_commit_was_recorded_is_told_to_be_behind(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = take_in(lake, {1: 2, 2: 1})[:2]
    ids += lake.commit({1: 3})
    load(lake.pipeline())
    backup = save(lake)
    record = Publications.record

    def record_and_go_back(*arguments: Any) -> None:
        record(*arguments)
        put_back(lake, backup)

    with monkeypatch.context() as patched:
        patched.setattr(Publications, "record", record_and_go_back)
        with pytest.raises(LedgerBehind, match=r"found publication .* but the ledger"):
            lake.pipeline().publish(day(1), "cli", NOW)
    lake.pipeline().restore_ledger()

    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("act", [load, rebuild, lambda pipeline: pipeline.reopen(day(1), NOW)])
def test_ledger_that_is_lost_under_a_command_is_told_by_the_next_try(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, act: Callable[[Pipeline], Any]
) -> None:
    take_in(lake, {1: 2, 2: 1})
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    lock = numbers.lock

    def lose_and_lock(connection: sa.Connection, name: str) -> Any:
        for table in reversed(metadata.sorted_tables):
            connection.execute(sa.delete(table))
        return lock(connection, name)

    with monkeypatch.context() as patched:
        patched.setattr(numbers, "lock", lose_and_lock)
        with pytest.raises(LedgerMoved, match="expected the pipeline"):
            act(pipeline)


@dataclass(frozen=True)
class BeforeSealed(OsCalls):
    """System calls, with something done once before an announce stands in its file."""

    act: Callable[[], Any]
    acted: list[str] = field(default_factory=list, hash=False, compare=False)

    def link(self, source: str, target: str) -> None:
        if "/sealed" in target and not self.acted:
            self.acted.append(target)
            self.act()
        super().link(source, target)


@pytest.mark.on_disk
@pytest.mark.parametrize("lost", [True, False], ids=["lost ledger", "ledger in use"])
@pytest.mark.parametrize("kind", ["load", "replay"])
def test_announce_that_a_restoration_fenced_off_is_no_reason_for_another_one(
    lake: SmallLake, kind: str, lost: bool
) -> None:
    ids = take_in(lake, {1: 3, 2: 1})[:3]
    if kind == "load":
        ids += lake.commit({1: 2})

    def restore() -> None:
        if lost:
            lose(lake)
        lake.pipeline().restore_ledger()

    storage = LocalStorage(BeforeSealed(restore))
    stale = lake.pipeline(storage, **NARROW) if kind == "replay" else lake.pipeline(storage)
    with pytest.raises(FenceLost):
        load(stale) if kind == "load" else replay(stale, 1)

    assert list(lake.pipeline().findings()) == []
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {"dt=2026-02-01": ids}
    lose(lake)
    lake.pipeline().restore_ledger()
    assert list(lake.pipeline().findings()) == []


@pytest.mark.follows("LedgerBehind")
@pytest.mark.parametrize("again", [1, 2])
def test_ledger_from_before_a_reset_learns_what_was_published_since(
    lake: SmallLake, again: int
) -> None:
    lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    backup = save(lake)
    if again > 1:
        lake.pipeline().drop("cli", NOW)
        load(lake.pipeline())
    lake.pipeline().drop("cli", NOW)
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({2: 1, 4: 1})
    load(lake.pipeline())
    expected = lake.ids()
    put_back(lake, backup)
    with pytest.raises(LedgerBehind, match="`tidegate fsck orders --rebuild`"):
        publish(lake.pipeline())

    lake.pipeline().restore_ledger()

    assert lake.ids() == expected
    assert list(lake.pipeline().findings()) == []
    publish(lake.pipeline())
    lake.commit({1: 1, 5: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == {
        "dt=2026-02-01": [1, 2, 4, 8],
        "dt=2026-02-02": [3, 6],
        "dt=2026-02-03": [5],
        "dt=2026-02-04": [7],
    }


@pytest.mark.follows("LedgerBehind")
def test_window_of_a_ledger_that_another_one_replaced_is_read_anew(lake: SmallLake) -> None:
    lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    backup = save(lake)
    # The other one is restored, as after a move, and the first goes on being used beside it.
    other = lake.root / "other.db"
    shutil.copy(backup / "ledger.db", other)
    there = f"sqlite:///{other}"
    open_pipeline(lake.file(), ledger=there).restore_ledger()
    lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    rebuild(open_pipeline(lake.file(), ledger=there))
    open_pipeline(lake.file(), ledger=there).restore_ledger()
    load(open_pipeline(lake.file(), ledger=there))
    with pytest.raises(LedgerBehind, match="`tidegate fsck orders --rebuild`"):
        publish(lake.pipeline())

    lake.pipeline().restore_ledger()

    publish(lake.pipeline())
    lake.commit({4: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    expected = {"dt=2026-02-01": [1, 2, 4], "dt=2026-02-02": [3], "dt=2026-02-03": [5]}
    assert lake.ids() == expected
    assert list(lake.pipeline().findings()) == []


def test_lost_window_is_asked_for_though_the_ledger_lacks_a_replay(lake: SmallLake) -> None:
    """Its rows wait, and only the ledger knows of them."""
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({2: 2, 3: 1})
    load(lake.pipeline())
    backup = save(lake)
    narrow = lake.pipeline(**NARROW)
    replay(narrow, 1)
    (original,) = (
        path.parent
        for path in (lake.work / "windows" / "000001").rglob("plan.json")
        if "id > 1" not in path.read_text()
    )
    shutil.rmtree(original)
    shutil.rmtree(lake.work / "windows" / "000002")
    put_back(lake, backup)

    with pytest.raises(StateFileLost, match=r"windows/00000[12]/"):
        lake.pipeline(**NARROW).restore_ledger()
