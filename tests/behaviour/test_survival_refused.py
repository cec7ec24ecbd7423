"""A window that cannot be planned blocks nobody: without a plan it was promised to nobody."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, known, later, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import (
    ChangesReadWhole,
    CursorExpired,
    FenceLost,
    NonAppendSnapshot,
    PlannedOtherwise,
    SnapshotNotFound,
    TransientError,
    WindowOpen,
)
from tidegate.ledger.holder import Holder
from tidegate.ledger.windows import Windows
from tidegate.model.instant import InstantRange
from tidegate.model.plan import Window, WindowKind
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.pipeline.load.loader import Loader
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline

CLAIM = timedelta(minutes=2)
WHOLE = {"source": {"read": {"mode": "snapshot"}}}
SKIP = {"source": {"read": {"on_non_append": "skip"}}}
FILTERED = {"source": {"read": {"filter": "id > 0"}}}


class Died(BaseException):
    """No handler of errors runs for it."""


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def expire(lake: SmallLake, *positions: int) -> None:
    """Let the table forget snapshots as Spark does: no file goes, and no parent's id is erased."""
    metadata = json.loads(Path(lake.table.refresh().metadata_location[7:]).read_text())
    gone = {metadata["snapshots"][position]["snapshot-id"] for position in positions}
    for key in ("snapshots", "snapshot-log"):
        metadata[key] = [item for item in metadata[key] if item["snapshot-id"] not in gone]
    path = lake.root / f"expired-{lake.commits}.metadata.json"
    path.write_text(json.dumps(metadata))
    with closing(sqlite3.connect(lake.root / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", [f"file://{path}"])
    lake.table.refresh()


def roll_back(lake: SmallLake, position: int) -> None:
    """Let the table stand as it did after one of its commits."""
    snapshot = lake.table.refresh().metadata.snapshots[position].snapshot_id
    lake.table.manage_snapshots().rollback_to_snapshot(snapshot).commit()


def delete(lake: SmallLake, identifier: int) -> None:
    """Delete a row in one commit."""
    lake.commits += 1
    moment = known(lake.commits - 0.5).isoformat()
    lake.table.delete(f"id = {identifier}", snapshot_properties={"known-at": moment})


def opened(pipeline: Pipeline) -> list[int]:
    """Number the windows that are open."""
    return [item.window.sequence for item in pipeline.ledger.windows.all() if not item.sealed]


def taken_by_a_dead_run(lake: SmallLake) -> Pipeline:
    """Take the next load's window and die before it is planned; the ledger when its time is over.

    Nothing is left of the run but the row in the ledger.
    """
    pipeline = lake.pipeline()
    state = pipeline.ledger.pipeline.find()
    assert state is not None
    pin = pipeline.source.timeline.pin(NOW)
    assert pin.head is not None
    draft = Window(0, InstantRange(state.checkpoint, pin.head), WindowKind.LOAD, None, "dead")
    pipeline.ledger.windows.take(draft, state, Holder("airflow-worker", NOW, CLAIM))
    return later(lake.pipeline(), CLAIM)


def rebuilt(pipeline: Pipeline) -> None:
    planned = pipeline.rebuild([day(1)], Run("mend", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def test_rebuild_as_of_an_expired_checkpoint_takes_nothing_and_goes_after_a_load(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    ids += lake.commit({1: 2, 3: 1})[:2]
    expire(lake, 0)

    with pytest.raises(SnapshotNotFound):
        rebuilt(pipeline)

    assert opened(pipeline) == []
    load(pipeline, owner="another")
    rebuilt(pipeline)
    publish(pipeline)
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_replay_of_an_expired_snapshot_holds_nothing(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    lake.commit({3: 1})
    load(lake.pipeline())
    expire(lake, 0)
    changed = lake.pipeline(**FILTERED)
    before = changed.ledger.windows.get(1)

    with pytest.raises(SnapshotNotFound):
        changed.replay(1, Run("again", "cli"), NOW)

    assert changed.ledger.windows.get(1) == before


def test_replay_of_an_expired_snapshot_with_an_unchanged_plan_finds_everything_done(
    lake: SmallLake,
) -> None:
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({3: 1})
    load(lake.pipeline())
    expire(lake, 0)
    pipeline, before = lake.pipeline(), lake.stamps()

    planned = pipeline.replay(1, Run("again", "cli"), NOW)

    assert pipeline.engine_for(planned) == "none"
    assert pipeline.announce(planned, NOW).partitions == ()
    assert lake.stamps() == before


def test_window_of_a_dead_run_whose_snapshot_was_rolled_back_is_taken_anew(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    lake.commit({1: 2})
    heir = taken_by_a_dead_run(lake)
    roll_back(lake, 0)
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 1)

    load(heir, owner="heir")
    publish(heir)

    assert opened(heir) == []
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


@pytest.mark.follows("CursorExpired")
def test_window_of_a_dead_run_whose_snapshot_expired_leaves_the_way_of_the_checkpoint(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    heir = taken_by_a_dead_run(lake)
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 0, 1)

    with pytest.raises(CursorExpired, match="on_expired_cursor: full_reload"):
        load(heir, owner="heir")

    assert opened(heir) == []
    pipeline = lake.pipeline(source={"on_expired_cursor": "full_reload"})
    load(pipeline)
    publish(pipeline)
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_window_of_a_dead_rebuild_whose_snapshot_expired_gives_way_to_a_load(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    pipeline = lake.pipeline()
    load(pipeline)
    state = pipeline.ledger.pipeline.find()
    assert state is not None
    assert state.checkpoint is not None
    whole = InstantRange(None, state.checkpoint)
    draft = Window(0, whole, WindowKind.REBUILD, None, "dead", (day(1),))
    pipeline.ledger.windows.take(draft, state, Holder("airflow-worker", NOW, CLAIM))
    ids += lake.commit({1: 2, 3: 1})[:2]
    expire(lake, 0)

    heir = later(lake.pipeline(), CLAIM)
    load(heir, owner="heir")
    publish(heir)

    assert opened(heir) == []
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


@pytest.mark.parametrize("change", ["skip", "other-owner"])
def test_window_that_planning_refused_is_given_back(lake: SmallLake, change: str) -> None:
    """Who is refused holds nothing: the next run plans from the checkpoint, whatever it says."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    delete(lake, 2)
    with pytest.raises(NonAppendSnapshot):
        load(lake.pipeline(), owner="airflow:orders:one")
    assert opened(lake.pipeline()) == []
    ids += lake.commit({1: 2, 2: 1})[:2]

    pipeline = lake.pipeline(**SKIP)
    load(pipeline, owner="cli" if change == "skip" else "airflow:orders:two")
    publish(pipeline)

    assert opened(pipeline) == []
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_window_of_a_dead_run_that_planning_refuses_is_given_back(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    delete(lake, 2)
    heir = taken_by_a_dead_run(lake)

    with pytest.raises(NonAppendSnapshot):
        load(heir, owner="heir")

    assert opened(heir) == []
    load(lake.pipeline(**SKIP))


def test_window_with_a_plan_goes_on_with_it_where_the_snapshot_expired(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    (planned,) = lake.pipeline().plan(Run("dead", "airflow-worker"), NOW)
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 0, 1)

    pipeline = later(lake.pipeline(), CLAIM)
    announced = load(pipeline, owner="heir")
    publish(pipeline)

    assert announced.windows == (planned.sequence, planned.sequence + 1)
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


@pytest.mark.on_disk
@pytest.mark.parametrize("lost", ["plan.json", "splits.jsonl"])
def test_window_that_lost_its_plan_and_its_snapshot_gives_way_to_what_is_there_now(
    lake: SmallLake, lost: str
) -> None:
    """What nobody can read any more was announced by nobody."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    (planned,) = lake.pipeline().plan(Run("dead", "airflow-worker"), NOW)
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 0, 1)
    Path(planned.uri, lost).unlink()
    heir = later(lake.pipeline(source={"on_expired_cursor": "full_reload"}), CLAIM)
    shown = heir.preview(Run("asks", "cli"), NOW)

    announced = load(heir, owner="heir")
    publish(heir)

    assert announced.windows == (planned.sequence + 1,)
    assert heir.ledger.windows.get(planned.sequence + 1).window.range == shown.range
    assert opened(heir) == []
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids
    assert list(heir.findings()) == []


def test_window_with_a_plan_keeps_it_where_another_configuration_is_refused(
    lake: SmallLake,
) -> None:
    """What was planned was promised: the message names the window, and the way back."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    (planned,) = lake.pipeline().plan(Run("dead", "airflow-worker"), NOW)
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 0, 1)

    with pytest.raises(SnapshotNotFound, match=f"window {planned.sequence} "):
        load(later(lake.pipeline(**FILTERED), CLAIM), owner="heir")

    assert opened(lake.pipeline()) == [planned.sequence]
    assert lake.pipeline().stored_plan(planned.sequence)[0].digest == planned.digest
    pipeline = later(lake.pipeline(), CLAIM)
    load(pipeline, owner="heir")
    publish(pipeline)
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_window_without_a_plan_is_not_taken_from_a_run_that_lives(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    lake.commit({1: 2})
    taken_by_a_dead_run(lake)
    lake.commit({1: 3})
    expire(lake, 0, 1)
    before = lake.pipeline().ledger.windows.open()

    with pytest.raises(WindowOpen):
        load(lake.pipeline(), owner="impatient")

    assert lake.pipeline().ledger.windows.open() == before


def test_window_whose_successor_planned_it_is_not_dropped_by_the_run_before(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow run finds out last that its window is refused; its successor has it by then."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    delete(lake, 2)
    successor: list[PlannedWindow] = []

    def overtaken() -> None:
        successor.extend(later(lake.pipeline(**SKIP), CLAIM).plan(Run("b", "second"), NOW))

    before_planning(monkeypatch, overtaken)
    with pytest.raises((PlannedOtherwise, FenceLost)):
        lake.pipeline().plan(Run("a", "first"), NOW)

    pipeline = lake.pipeline(**SKIP)
    assert opened(pipeline) == [successor[0].sequence]
    pipeline.finish_load(successor, NOW, local)
    publish(pipeline)
    assert lake.ids()["dt=2026-02-01"] == ids


def test_window_that_its_successor_dropped_is_not_announced_by_the_run_before(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a window that was dropped comes back for no other."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    delete(lake, 2)

    def overtaken() -> None:
        with pytest.raises(NonAppendSnapshot):
            load(later(lake.pipeline(), CLAIM), owner="second")

    before_planning(monkeypatch, overtaken)
    ids += lake.commit({1: 2, 3: 1})[:2]
    slow = lake.pipeline(**SKIP)
    load_or_retry(slow)
    publish(slow)

    assert [item.sealed for item in slow.ledger.windows.all()] == [True, True]
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def load_or_retry(pipeline: Pipeline) -> None:
    """Load as a task does: what is Transient is tried again."""
    try:
        load(pipeline, owner="first")
    except TransientError:
        load(pipeline, owner="first")


def before_planning(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let somebody else act once, between the taking of a window and its planning."""
    plan_window, acted = Loader._plan_window, []

    def delayed(self: Loader, *given: object) -> PlannedWindow:
        if not acted:
            acted.append(True)
            act()
        return plan_window(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Loader, "_plan_window", delayed)


@pytest.fixture
def typed(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Type a command of a message as it stands."""
    lake.found_by_name(monkeypatch)

    def run(line: str) -> Result:
        program, *arguments = shlex.split(line)
        assert program == "tidegate"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result

    return run


def commands(refused: BaseException) -> list[str]:
    return re.findall("`(tidegate [^`]*)`", str(refused))


@pytest.mark.follows("SnapshotNotFound")
def test_rebuild_as_of_an_expired_checkpoint_says_to_load_first(
    lake: SmallLake, typed: Callable[[str], Result]
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2, 3: 1})[:2]
    expire(lake, 0)
    with pytest.raises(SnapshotNotFound) as refused:
        rebuilt(lake.pipeline())

    first, then = commands(refused.value)
    typed(first)
    typed(then)

    assert then == "tidegate rebuild orders dt=2026-02-01"
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


@pytest.mark.follows("SnapshotNotFound")
def test_replay_of_an_expired_snapshot_says_which_partitions_to_rebuild(
    lake: SmallLake, typed: Callable[[str], Result]
) -> None:
    lake.commit({1: 4, 2: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({3: 1})
    load(lake.pipeline())
    expire(lake, 0)
    pipeline = lake.pipeline(source={"read": {"filter": "id <> 2"}})
    with pytest.raises(SnapshotNotFound, match="window 1 of pipeline 'orders'") as refused:
        pipeline.replay(1, Run("again", "cli"), NOW)

    (again,) = commands(refused.value)
    typed(again)

    publish(pipeline)
    assert lake.ids() == {"dt=2026-02-01": [1, 3, 4], "dt=2026-02-02": [5, 6]}
    assert lake.listed_ids() == lake.ids()


@pytest.mark.follows("SnapshotNotFound")
def test_window_that_lost_its_plan_behind_an_announce_says_what_to_move_away(
    lake: SmallLake, typed: Callable[[str], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restoration believes the file of an announce, so nothing drops the window by itself."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as death:
        death.setattr(Windows, "announce", die)
        with pytest.raises(Died):
            load(lake.pipeline(), owner="airflow-worker")
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 0, 1)
    (plan,) = (lake.work / "windows" / "000002").rglob("plan.json")
    plan.unlink()
    heir = later(lake.pipeline(source={"on_expired_cursor": "full_reload"}), CLAIM)
    with pytest.raises(SnapshotNotFound, match="never reached the ledger") as refused:
        load(heir, owner=process_owner("cli"))
    assert opened(heir) == [2]

    (moved,) = re.findall("`(sealed[^`]*)`", str(refused.value))
    (plan.parent / moved).rename(lake.root / moved)
    (again,) = commands(refused.value)
    typed(again)

    publish(heir)
    assert opened(heir) == []
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def planned_and_expired(lake: SmallLake, typed: Callable[[str], Result]) -> list[int]:
    """Plan a window that the source no longer keeps; the ids of the first day, of all commits."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    typed("tidegate plan orders")
    ids += lake.commit({1: 3, 2: 1})[:3]
    expire(lake, 0, 1)
    return ids


@pytest.mark.follows("SnapshotNotFound")
@pytest.mark.parametrize("given_up", [False, True], ids=["finished", "given up"])
def test_planned_window_that_cannot_be_planned_anew_says_how_to_finish_it(
    lake: SmallLake, typed: Callable[[str], Result], *, given_up: bool
) -> None:
    ids = planned_and_expired(lake, typed)
    with pytest.raises(SnapshotNotFound) as refused:
        load(lake.pipeline(**FILTERED), owner=process_owner("cli"))

    shown, finished, abandoned, again = commands(refused.value)
    planned = json.loads(typed(shown).stdout)["config"]
    assert planned["source"]["read"]["filter"] is None
    lake.pipeline(source={"read": {"filter": planned["source"]["read"]["filter"]}})
    if given_up:
        typed(f"{abandoned} --yes")
        with pytest.raises(CursorExpired, match="full_reload"):
            load(lake.pipeline(), owner=process_owner("cli"))
        lake.keys = {"source": {"on_expired_cursor": "full_reload"}}
        lake.pipeline()
    typed(again if given_up else finished)

    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_planned_window_that_an_erasure_lets_be_planned_anew_is_given_up_if_it_cannot(
    lake: SmallLake, typed: Callable[[str], Result]
) -> None:
    ids = planned_and_expired(lake, typed)
    erased = lake.pipeline()
    erasure = erased.erasure("id = 1", "ada", NOW)
    erased.erase(
        erasure, Run("erase", "cli"), Approval(approved=True, by="ada", at=NOW, comment=""), local
    )
    with pytest.raises(SnapshotNotFound) as refused:
        load(lake.pipeline(), owner=process_owner("cli"))

    abandoned, again = commands(refused.value)
    typed(f"{abandoned} --yes")
    lake.keys = {"source": {"on_expired_cursor": "full_reload"}}
    lake.pipeline()
    typed(again)

    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids[1:]


@pytest.mark.follows("PlannedOtherwise")
@pytest.mark.parametrize("given_up", [False, True], ids=["finished", "given up"])
def test_planned_window_that_another_configuration_refuses_says_how_to_finish_it(
    lake: SmallLake, typed: Callable[[str], Result], *, given_up: bool
) -> None:
    ids = lake.commit({1: 4, 2: 2})[:4]
    load(lake.pipeline())
    delete(lake, 6)
    ids += lake.commit({1: 2})
    lake.pipeline(**SKIP)
    typed("tidegate plan orders")
    with pytest.raises(PlannedOtherwise, match=r"window 2 is open.* expected appends") as refused:
        load(lake.pipeline(), owner=process_owner("cli"))
    assert opened(lake.pipeline()) == [2]

    *_, shown, finished, abandoned = commands(refused.value)
    planned = json.loads(typed(shown).stdout)["config"]
    assert planned["source"]["read"]["on_non_append"] == "skip"
    if given_up:
        typed(f"{abandoned} --yes")
        assert opened(lake.pipeline()) == []
    lake.pipeline(**SKIP)
    typed(finished)

    publish(lake.pipeline())
    ids += lake.commit({1: 1, 3: 1})[:1]
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def check_reads_whole(pipeline: Pipeline, lake: SmallLake, ids: list[int]) -> None:
    """Load as the file says by now; everything is out once."""
    load(pipeline)
    publish(pipeline)
    assert lake.ids()["dt=2026-02-01"] == lake.listed_ids()["dt=2026-02-01"] == ids


def test_window_that_nobody_planned_is_not_read_whole(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    publish(lake.pipeline())
    ids += lake.commit({1: 2})
    taken_by_a_dead_run(lake)
    lake.keys = WHOLE

    check_reads_whole(later(lake.pipeline(), CLAIM), lake, ids)


@pytest.mark.follows("ChangesReadWhole")
def test_window_of_changes_is_not_replayed_whole(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.keys = WHOLE

    with pytest.raises(ChangesReadWhole) as refused:
        lake.pipeline().replay(2, Run("replay", "cli"), NOW)

    assert commands(refused.value) == ["tidegate load orders"]
    assert opened(lake.pipeline()) == []
    check_reads_whole(lake.pipeline(), lake, ids)
