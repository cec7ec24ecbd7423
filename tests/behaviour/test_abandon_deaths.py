"""A window is given up by a process that dies at any point, or beside another one."""

from __future__ import annotations

import itertools
import os
import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crash.faults import Stopper, stopping_storage, watch_database
from small_lake import DAY, DAY_1, NOW, SmallLake, later, load, local, publish, published_ids
from tidegate.errors import (
    AbandonRefused,
    FenceLost,
    LedgerMoved,
    ListedFileGone,
    WindowNotFound,
)
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline
    from tidegate.storage import Storage

pytestmark = pytest.mark.on_disk

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"
SOON, LATER = timedelta(minutes=10), timedelta(minutes=30)
"""A run that does not renew is dead by the first one, and its successor by the second."""
MOST = 100


class Folder:
    """A window that was announced, and one that its run left open, partly staged."""

    def __init__(self, root: Path, *, plans: int = 1) -> None:
        self.lake = SmallLake(root, keys={"commit": {"trigger": "process-time"}})
        self.root = root / "landing"
        self.root.mkdir()
        self.lake.source = {"kind": "files", "path": str(self.root)}
        self.put("a", 1, 1, 2)
        load(self.pipeline())
        self.put("b", 2, 3)
        for number in range(plans):
            # A window that is planned anew for another pipeline file has several plans.
            self.lake.source["read"] = {"filter": f"id <> {100 + number}"}
            pipeline = later(self.pipeline(), SOON * number)
            moment = NOW + timedelta(minutes=number)
            pipeline.plan(Run(f"dead {number}", f"dead {number}"), moment)

    def put(self, name: str, day: int, *ids: int) -> Path:
        at = [DAY_1 + DAY * (day - 1)] * len(ids)
        path = self.root / f"{name}.parquet"
        columns = {"id": pa.array(ids, pa.int64()), "at": pa.array(at, pa.timestamp("us", "UTC"))}
        pq.write_table(pa.table(columns), path)
        return path

    def pipeline(self, storage: Storage | None = None) -> Pipeline:
        return self.lake.pipeline(storage)

    def check_ends_well(self, expected: dict[str, list[int]]) -> None:
        """Compare what is published, also by a ledger that is restored from the files."""
        publish(later(self.pipeline(), LATER * 3))
        assert list(self.pipeline().findings()) == []
        windows = self.pipeline().ledger.windows.all()
        assert [item.sealed for item in windows] == [True] * len(windows)
        assert published_ids(self.lake.target) == self.lake.listed_ids() == expected
        for path in self.lake.root.glob("ledger.db*"):
            path.unlink()
        self.pipeline().restore_ledger()
        restored = self.pipeline().ledger.windows.all()
        assert [item.window.range for item in restored] == [item.window.range for item in windows]
        assert load(self.pipeline()).windows == ()
        self.put("d", 1, 9)
        load(self.pipeline())
        publish(self.pipeline())
        found = published_ids(self.lake.target)
        assert found == self.lake.listed_ids() == {**expected, FIRST: [*expected[FIRST], 9]}


def abandon(pipeline: Pipeline, by: timedelta = SOON * 2, owner: str | None = None) -> None:
    name = owner or process_owner("cli")
    later(pipeline, by).abandon(2, name, NOW, by="ada", comment="the file is gone")


def dies(act: Callable[[Stopper], None], at: int) -> bool:
    """Do something in a process of its own, which is killed before a change; whether it was."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act(Stopper(at))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def end_with_a_load(folder: Folder) -> None:
    """Load at once; where the window is still open, give it up."""
    try:
        load(later(folder.pipeline(), LATER))
    except ListedFileGone:
        abandon(folder.pipeline(), LATER * 2)
        load(later(folder.pipeline(), LATER * 3))


def end_with_the_command(folder: Folder) -> None:
    """Type the command again, then load."""
    try:
        abandon(folder.pipeline(), LATER)
    except WindowNotFound:
        assert folder.pipeline().was_abandoned(2)
    load(later(folder.pipeline(), LATER * 2))


@pytest.mark.parametrize(
    ("ends", "plans", "stride"),
    [
        pytest.param(end_with_a_load, 2, 4, id="load, two plans"),
        pytest.param(end_with_the_command, 1, 3, id="command, one plan"),
        *(
            pytest.param(ends, plans, 1, marks=pytest.mark.slow)
            for ends in (end_with_a_load, end_with_the_command)
            for plans in (1, 2)
        ),
    ],
)
def test_abandonment_that_was_killed_at_any_change_ends_like_a_whole_one(
    tmp_path: Path, ends: Callable[[Folder], None], plans: int, stride: int
) -> None:
    for number in range(1, MOST, stride):
        folder = Folder(tmp_path / str(number), plans=plans)
        (folder.root / "b.parquet").unlink()
        folder.put("c", 2, 4)

        def act(stopper: Stopper, folder: Folder = folder) -> None:
            pipeline = folder.pipeline(stopping_storage(stopper))
            watch_database(pipeline.ledger.engine, stopper)
            abandon(pipeline)

        was_killed = dies(act, number)
        ends(folder)

        folder.check_ends_well({FIRST: [1, 2], SECOND: [4]})
        if not was_killed:
            break
    assert 5 < number < MOST - stride


class Meeting:
    """Lets another actor work, once, before the n-th step of an actor in ledger or storage."""

    def __init__(self, at: int, other: Callable[[], object]) -> None:
        self.at = at
        self.steps = 0
        self.other = other
        self.met = False

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.met = True
            self.other()

    def pipeline(self, folder: Folder) -> Pipeline:
        return folder.pipeline(stopping_storage(Stopper(between=self.step)))

    def watch(self, pipeline: Pipeline) -> Pipeline:
        """Stop before each of the ledger's transactions on windows, and after the last one."""
        windows = pipeline.ledger.windows
        for name in ("resume", "reserve", "give_back", "announce", "take"):
            object.__setattr__(windows, name, self._stepping(getattr(windows, name)))
        return pipeline

    def _stepping(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **named: Any) -> Any:
            self.step()
            return call(*arguments, **named)

        return stepping


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_load_that_takes_over_at_any_step_of_an_abandonment_brings_every_row_once(
    tmp_path: Path, stride: int
) -> None:
    """Who gives the window up sleeps for long, so that a load believes it dead."""
    outcomes = set()
    for number in itertools.count(1, stride):
        folder = Folder(tmp_path / str(number))
        meeting = Meeting(number, lambda folder=folder: load(later(folder.pipeline(), LATER)))
        pipeline = meeting.watch(later(meeting.pipeline(folder), SOON))
        try:
            pipeline.abandon(2, "sleeper", NOW, by="ada")
            outcomes.add("given up")
        except (FenceLost, AbandonRefused, LedgerMoved, WindowNotFound) as lost:
            outcomes.add(lost.code)
        load(later(folder.pipeline(), LATER * 2))

        folder.check_ends_well({FIRST: [1, 2], SECOND: [3]})
        if not meeting.met:
            break
    assert {"given up", "FenceLost"} <= outcomes
    assert number > 5


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_abandonment_at_any_step_of_a_load_brings_every_row_once(
    tmp_path: Path, stride: int
) -> None:
    """The load sleeps for long, so that it is believed dead and its window given up."""
    outcomes = set()
    for number in itertools.count(1, stride):
        folder = Folder(tmp_path / str(number))

        def give_up(folder: Folder = folder) -> None:
            try:
                abandon(folder.pipeline(), LATER, "other")
            except (AbandonRefused, WindowNotFound) as refused:
                outcomes.add(refused.code)

        meeting = Meeting(number, give_up)
        pipeline = meeting.watch(later(meeting.pipeline(folder), SOON))
        try:
            pipeline.load(Run("sleeper", "sleeper"), NOW, local)
            outcomes.add("loaded")
        except (FenceLost, LedgerMoved) as lost:
            outcomes.add(lost.code)
        load(later(folder.pipeline(), LATER * 2))

        folder.check_ends_well({FIRST: [1, 2], SECOND: [3]})
        if not meeting.met:
            break
    assert {"loaded", "FenceLost", "AbandonRefused"} <= outcomes
    assert number > 5
