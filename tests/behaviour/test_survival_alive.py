"""A sign of life: who works keeps what it holds, who died loses it, and the messages tell which."""

from __future__ import annotations

import errno
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from crash.faults import Stopper, stopping_storage
from small_lake import NOW, SmallLake, day, decide, interval, later, load, local, publish
from tidegate.cli.app import app
from tidegate.errors import ClaimHeld, FenceLost, TidegateError, WindowOpen
from tidegate.execute.local import LocalExecutor
from tidegate.ledger import Ledger
from tidegate.ledger.clock import database_time
from tidegate.model.instant import DataInterval
from tidegate.model.run import Run
from tidegate.pipeline.publish.finishing import Finisher
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline
    from tidegate.storage import Storage

CLAIM = timedelta(minutes=2)
SHORT = {"execute": {"claim_timeout": "300ms"}}
"""So that a test need not wait for a renewal; the ledger's time is what the test says."""

ELSEWHERE = "cli:elsewhere:1:1:0.0"
"""A process of another host, of which only its time tells."""

IN_AIRFLOW = "airflow:orders_load/scheduled__a"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def at(pipeline: Pipeline, moment: datetime) -> Pipeline:
    """Give the pipeline with its ledger's clock stopped."""
    return replace(pipeline, ledger=replace(pipeline.ledger, clock=lambda _connection: moment))


@dataclass
class Contender:
    """Waits at a change of the first run's until that has renewed, and then tries to take over."""

    place: str
    contend: Callable[[datetime], None]
    """Gets the time at which the first run would have lost what it holds without a renewal."""
    expires: Callable[[], datetime]
    refused: list[str] = field(default_factory=list)

    def storage(self) -> Storage:
        self.stopper = Stopper(between=self._wait)
        return stopping_storage(self.stopper)

    def _wait(self) -> None:
        if self.refused or not re.search(self.place, self.stopper.made[-1]):
            return
        first, patience = self.expires(), time.monotonic() + 30
        while self.expires() == first and time.monotonic() < patience:
            time.sleep(0.02)
        try:
            self.contend(first)
        except (WindowOpen, ClaimHeld) as refused:
            self.refused.append(refused.code)


@pytest.mark.on_disk
@pytest.mark.parametrize("place", [r"plan\.json", "part-", r"sealed\.json"])
def test_window_is_kept_from_others_while_a_step_lasts(lake: SmallLake, place: str) -> None:
    ids = lake.commit({1: 4, 2: 1})
    lake.keys = SHORT
    second = lake.pipeline()
    contender = Contender(
        place,
        lambda moment: at(second, moment).plan(Run("b", "second"), NOW),
        lambda: second.ledger.windows.get(1).expires,
    )

    load(lake.pipeline(contender.storage()), owner="first")
    publish(second)

    assert contender.refused == ["WindowOpen"]
    assert [item.attempt for item in second.ledger.windows.all()] == [1]
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


@pytest.mark.on_disk
def test_partition_is_kept_from_others_while_a_commit_moves_files(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})
    lake.keys = SHORT
    second = lake.pipeline()
    load(second)
    contender = Contender(
        "link part-",
        # Not through the pipeline: the lock on the files would refuse it before the ledger does.
        lambda moment: claim(at(second, moment), "second"),
        lambda: second.ledger.partitions.get(day(1)).expires,
    )

    publish(lake.pipeline(contender.storage()), "first")

    assert contender.refused == ["ClaimHeld"]
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


def claim(pipeline: Pipeline, owner: str) -> None:
    pipeline.ledger.partitions.claim(day(1), pipeline._holder(owner, NOW))


def test_partition_is_kept_from_others_while_its_gate_runs(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Great Expectations may take longer than a claim lasts, above all on Spark."""
    from tidegate.pipeline.publish import gating

    lake.commit({1: 4, 2: 1})
    lake.keys = SHORT
    second = lake.pipeline()
    load(second)
    check, taken = gating.check, []

    def slow(*arguments: Any) -> Any:
        contender = Contender(
            "",
            lambda moment: claim(at(second, moment), "second"),
            lambda: second.ledger.partitions.get(day(1)).expires,
        )
        contender.stopper = Stopper(made=["gate"])
        contender._wait()
        taken.extend(contender.refused)
        return check(*arguments)

    monkeypatch.setattr(gating, "check", slow)

    assert [item.state for item in publish(lake.pipeline(), "first")] == ["committed", "pending"]
    assert taken == ["ClaimHeld"]


def test_partition_is_kept_from_others_while_its_files_are_examined(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a partition of thousands of files, on a store that answers slowly."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    lake.keys = SHORT
    second = lake.pipeline()
    load(second)
    examine, taken = Finisher.examine, []

    def slow(*arguments: Any, **options: Any) -> None:
        contender = Contender(
            "",
            lambda moment: claim(at(second, moment), "second"),
            lambda: second.ledger.partitions.get(day(1)).expires,
        )
        contender.stopper = Stopper(made=["examine"])
        contender._wait()
        taken.extend(contender.refused)
        examine(*arguments, **options)

    monkeypatch.setattr(Finisher, "examine", slow)

    publish(lake.pipeline(), "first")

    # Before the gate and before the commit.
    assert taken == ["ClaimHeld", "ClaimHeld"]
    assert lake.ids() == {"dt=2026-02-01": ids}


@pytest.mark.on_disk
def test_windows_that_wait_for_their_turn_are_kept_while_another_is_read(lake: SmallLake) -> None:
    first = lake.pipeline()
    for number in (1, 2, 3):
        lake.commit({number: 3})
        load(first, interval(number))
    lake.keys = SHORT | {"source": {"read": {"filter": "amount < 9"}}}
    second = lake.pipeline()
    both = DataInterval(interval(1).start, interval(2).end)
    contender = Contender(
        "part-",
        lambda moment: at(second, moment).replay(2, Run("c", "second"), NOW),
        lambda: second.ledger.windows.get(2).expires,
    )

    announced = load(lake.pipeline(contender.storage()), both, owner="backfill")

    assert contender.refused == ["WindowOpen"]
    assert announced.windows == (1, 2)


def test_command_whose_clock_is_a_year_ahead_takes_nothing(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 1})
    first = lake.pipeline()
    first.plan(Run("a", ELSEWHERE), NOW)
    ahead = NOW + timedelta(days=365)

    with pytest.raises(WindowOpen):
        load(lake.pipeline(), owner="second", now=ahead)
    load(later(lake.pipeline(), CLAIM), owner="first")
    first.propose(day(1), ELSEWHERE, NOW)

    with pytest.raises(ClaimHeld):
        first.propose(day(1), "second", ahead)


def test_command_whose_clock_is_a_year_behind_keeps_nothing_for_longer(lake: SmallLake) -> None:
    lake.commit({1: 4})
    first = lake.pipeline()
    first.plan(Run("a", ELSEWHERE), NOW + timedelta(days=365))

    assert load(later(first, CLAIM), owner="second").windows == (1,)


def test_stale_stage_reads_nothing(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 1})
    first = lake.pipeline()
    planned = first.plan(Run("a", ELSEWHERE), NOW)
    later(lake.pipeline(), CLAIM).plan(Run("b", "second"), NOW)

    with LocalExecutor(2) as executor, pytest.raises(FenceLost):
        first.stage(planned[0], executor)

    assert list(lake.work.rglob("part-*")) == []


def test_stale_announcer_writes_nothing_before_its_successor_did(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 1})
    first = lake.pipeline()
    planned = staged(first, "a", ELSEWHERE)
    second = later(lake.pipeline(), CLAIM)
    again = second.plan(Run("b", "second"), NOW)

    with pytest.raises(FenceLost):
        first.announce(planned, NOW)

    assert list(lake.work.rglob("sealed*")) == []
    second.finish_load(again, NOW, local)
    assert len(list(lake.work.rglob("sealed*"))) == 1


@pytest.mark.on_disk
@pytest.mark.parametrize("changed", [False, True], ids=["same plan", "another plan"])
def test_announcer_taken_over_while_it_reads_messages_writes_nothing(
    lake: SmallLake, changed: bool
) -> None:
    """Its `sealed.json` would count when the ledger is lost."""
    ids = lake.commit({1: 4, 2: 1})
    first = lake.pipeline()
    planned = staged(first, "a", ELSEWHERE)
    keys: dict[str, Any] = {"source": {"read": {"filter": "id > 2"}}} if changed else {}
    second = later(lake.pipeline(**keys), CLAIM)
    (message,) = (lake.work / "windows").rglob("messages/*.json")
    overtaken = _Overtaken(first.storage, str(message), second)

    with pytest.raises(FenceLost):
        replace(first, storage=overtaken).announce(planned, NOW)

    assert list(lake.work.rglob("sealed*")) == []
    second.finish_load(overtaken.planned, NOW, local)
    publish(second)
    assert lake.ids() == {"dt=2026-02-01": ids[2 if changed else 0 : 4]}


def test_announce_that_happened_is_not_called_lost_by_what_comes_after_it(lake: SmallLake) -> None:
    """While a catalog is slow to protect what was read, a replay has time to take the window."""
    lake.keys = SHORT
    ids = lake.commit({1: 3, 2: 1})[:3]
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("first", ELSEWHERE), NOW)
    source: Any = pipeline.source

    def protect(*_: Any) -> None:
        lake.pipeline().replay(1, Run("second", "cli"), NOW)
        time.sleep(0.3)

    source.protection = SimpleNamespace(protect=protect)

    announced = pipeline.finish_load(planned, NOW, local)

    assert announced.partitions == (day(1), day(2))
    assert lake.pipeline().ledger.windows.get(1).owner == "cli"
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids}


class _Overtaken:
    """A storage through which the second run takes the window while the first reads a message."""

    def __init__(self, storage: Storage, path: str, second: Pipeline) -> None:
        self._storage, self._path, self._second = storage, path, second
        self.planned: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read_bytes(self, path: str) -> bytes:
        if path == self._path and self.planned is None:
            self.planned = self._second.plan(Run("b", "second"), NOW)
        return self._storage.read_bytes(path)


def staged(pipeline: Pipeline, run: str, owner: str) -> Any:
    planned = pipeline.plan(Run(run, owner), NOW)
    with LocalExecutor(2) as executor:
        for item in planned:
            pipeline.stage(item, executor)
    return planned


@pytest.mark.on_disk
@pytest.mark.parametrize("place", ["make_dir one", "sync"])
def test_attempt_that_fails_leaves_no_directory(lake: SmallLake, place: str) -> None:
    """A disk that is full stays full otherwise, and every retry makes it fuller."""
    lake.commit({1: 4, 2: 1})
    rules = [{"name": "one", "where": "id <> 1", "on_failure": "quarantine"}]
    failures = []

    def fill_once() -> None:
        if stopper.made[-1].startswith(place) and any("part-" in name for name in stopper.made):
            stopper.between = None
            failures.append(attempts(lake))
            raise OSError(errno.ENOSPC, "No space left on device")

    stopper = Stopper(between=fill_once)
    pipeline = lake.pipeline(stopping_storage(stopper), rows=rules)
    planned = pipeline.plan(Run("a", "cli"), NOW)

    with LocalExecutor(1) as executor, pytest.raises((OSError, TidegateError)):
        pipeline.stage(planned[0], executor)

    assert len(failures[0]) == 2  # one for what is kept, one for what was put aside
    assert attempts(lake) == []
    with LocalExecutor(1) as executor:
        pipeline.stage(planned[0], executor)
    assert len(attempts(lake)) == 2


def attempts(lake: SmallLake) -> list[str]:
    """Name the directories below those for staged and quarantined files."""
    places = [*(lake.work / "windows").rglob("staged"), *lake.work.rglob("quarantine")]
    return [path.name for place in places for path in place.glob("*/*") if path.is_dir()]


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """How much later it is for the ledger of every command; commands make theirs themselves."""
    shifts = [timedelta(0)]

    def shifted(engine: sa.Engine, name: str) -> Ledger:
        return Ledger(engine, name, lambda connection: database_time(connection) + shifts[-1])

    monkeypatch.setattr("tidegate.pipeline.control.Ledger", shifted)
    return shifts


class Command(Protocol):
    """Runs a command line as it stands in a message: how it ended and what it wrote."""

    def __call__(self, line: str) -> tuple[int, str]: ...


@pytest.fixture
def tidegate(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> Command:
    lake.pipeline()
    lake.found_by_name(monkeypatch)

    def run(line: str) -> tuple[int, str]:
        program, *arguments = shlex.split(line)
        assert program == "tidegate"
        done = CliRunner().invoke(app, arguments)
        return done.exit_code, done.output

    return run


def told(text: str) -> tuple[str, datetime, datetime]:
    """Read a message: the command, when the holder renewed, and from when the command helps."""
    flat = " ".join(text.split())
    found = re.search(r"last renewed (\S+ \S+)Z\..*`(tidegate [^`]+)` after (\S+ \S+)Z", flat)
    assert found is not None, flat
    renewed, until = (datetime.fromisoformat(f"{found[place]}+00:00") for place in (1, 3))
    return found[2], renewed, until


@pytest.mark.follows("WindowOpen")
@pytest.mark.parametrize("owner", [ELSEWHERE, IN_AIRFLOW], ids=["process", "airflow run"])
@pytest.mark.parametrize("asked", ["load orders", "rebuild orders dt=2026-02-01"])
def test_message_about_a_window_of_a_dead_run_followed_to_the_letter(
    lake: SmallLake, shift: list[timedelta], tidegate: Command, owner: str, asked: str
) -> None:
    first_ids = lake.commit({1: 4})
    load(lake.pipeline(), interval(1))
    dead_ids = lake.commit({1: 2})
    lake.pipeline().plan(Run("dead", owner, interval(2)), NOW)
    own_ids = lake.commit({2: 1})

    code, text = tidegate(f"tidegate {asked}")
    command, renewed, until = told(text)

    assert (code, owner in text) == (1, True)
    assert until - renewed == CLAIM
    # Before that time the very command is refused, so that a run that lives loses nothing.
    assert tidegate(command)[0] == 1
    shift.append(CLAIM)
    assert tidegate(command)[0] == 0
    windows = lake.pipeline().ledger.windows.all()
    assert [item.sealed for item in windows] == [True, True, True]
    if asked.startswith("rebuild"):
        assert tidegate(f"tidegate {asked}")[0] == 0
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": sorted(first_ids + dead_ids)}
    assert own_ids
    assert windows[2].window.range.start_exclusive == windows[1].window.range.end_inclusive


@pytest.mark.follows("WindowOpen")
def test_message_about_a_replay_that_died_followed_to_the_letter(
    lake: SmallLake, shift: list[timedelta], tidegate: Command
) -> None:
    ids = lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    lake.pipeline().replay(1, Run("dead", ELSEWHERE), NOW)

    code, text = tidegate("tidegate replay orders 1")
    command, _, _ = told(text)
    shift.append(CLAIM)

    assert code == 1
    assert tidegate(command)[0] == 0
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


@pytest.fixture(scope="module")
def ended_owner() -> str:
    """The name of a process of this host that has ended."""
    telling = (
        "from tidegate.pipeline.state.holders import process_owner; print(process_owner('cli'))"
    )
    told = subprocess.run([sys.executable, "-c", telling], capture_output=True, check=True)
    return told.stdout.decode().strip()


NEEDS_YES = {"abandon", "release", "reset", "retire"}
"""Commands that ask; a test has no terminal."""


def named(text: str) -> list[str]:
    """Give the commands of a message in their order, as a script has to type them."""
    found = re.findall(r"`(tidegate [^`]+)`", " ".join(text.split()))
    return [f"{line} --yes" if line.split()[1] in NEEDS_YES else line for line in found]


@pytest.mark.follows("WindowOpen")
@pytest.mark.parametrize("owner", [ELSEWHERE, IN_AIRFLOW], ids=["process", "airflow run"])
@pytest.mark.parametrize(
    "asked",
    ["abandon orders", "reset orders --drop-target", "retire orders", "release orders"],
    ids=["abandon", "reset", "retire", "release"],
)
def test_message_names_the_way_to_what_was_asked_and_not_a_load(
    lake: SmallLake, shift: list[timedelta], tidegate: Command, owner: str, asked: str
) -> None:
    lake.commit({1: 4})
    load(lake.pipeline(), interval(1))
    lake.commit({1: 2})
    lake.pipeline().plan(Run("dead", owner, interval(2)), NOW)

    code, text = tidegate(f"tidegate {asked} --yes")
    commands = named(text)

    assert code == 1
    assert "load" not in " ".join(commands)
    assert " after 2" in text
    assert tidegate(commands[0])[0] == 1
    shift.append(CLAIM)
    # A run that may wait and cannot be taken over by this command is released before.
    last = 2 if (owner, asked) == (IN_AIRFLOW, "retire orders") else 1
    assert [tidegate(line)[0] for line in commands[:last]] == [0] * last
    assert commands[last - 1].startswith(f"tidegate {asked}")
    assert lake.pipeline().ledger.windows.open() is None or asked == "release orders"


@pytest.mark.follows("WindowOpen")
@pytest.mark.parametrize("asked", ["load", "abandon", "retire", "reset --drop-target", "rebuild"])
@pytest.mark.parametrize("way", [0, -1], ids=["first way", "last way"])
def test_message_says_now_once_the_time_is_past(
    lake: SmallLake, shift: list[timedelta], tidegate: Command, asked: str, way: int
) -> None:
    """A run of Airflow that is gone for good, and Airflow cannot be asked."""
    verb, *options = asked.split()
    again = " ".join(["tidegate", verb, "orders", *options])
    again += " dt=2026-02-01" if verb == "rebuild" else " --yes" if verb in NEEDS_YES else ""
    lake.commit({1: 4})
    load(lake.pipeline(), interval(1))
    lake.commit({1: 2})
    lake.pipeline().plan(Run("dead", IN_AIRFLOW, interval(2)), NOW)
    shift.append(CLAIM)

    code, text = tidegate(again)
    commands = named(text)

    assert code == 1
    assert " after 2" not in text
    assert " now " in " ".join(text.split())
    assert any(line.startswith("tidegate release orders 2") for line in commands)
    assert tidegate(commands[way] if verb != "retire" else commands[0])[0] == 0
    code, text = tidegate(again)
    if code == 1:
        # It was released, and still stands in the way of a window of another kind.
        assert tidegate(named(text)[0])[0] == 0
        assert tidegate(again)[0] == 0


@pytest.mark.follows("WindowOpen")
@pytest.mark.parametrize("way", [0, 1], ids=["load", "abandon"])
@pytest.mark.parametrize("asked", ["reset orders --yes", "rebuild orders dt=2026-02-01"])
def test_window_of_a_process_that_ended_is_not_waited_for(
    lake: SmallLake, tidegate: Command, ended_owner: str, asked: str, way: int
) -> None:
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    ids += lake.commit({1: 2})
    lake.pipeline().plan(Run("dead", ended_owner), NOW)

    code, text = tidegate(f"tidegate {asked}")

    assert code == 1
    assert "Wait" not in text
    assert "Nobody works on it any more" in " ".join(text.split())
    assert tidegate(named(text)[way])[0] == 0
    assert tidegate(f"tidegate {asked}")[0] == 0
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids()["dt=2026-02-01"] == ids


def test_person_who_said_that_a_run_is_gone_is_told_to_say_it_again(
    lake: SmallLake, shift: list[timedelta], tidegate: Command
) -> None:
    ids = lake.commit({1: 4, 2: 1})
    lake.pipeline().plan(Run("dead", IN_AIRFLOW), NOW)

    code, text = tidegate("tidegate load orders --take-over")
    command, _, _ = told(text)
    shift.append(CLAIM)

    assert (code, command) == (1, "tidegate load orders --take-over")
    assert tidegate(command)[0] == 0
    publish(lake.pipeline())
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


@pytest.mark.follows("ClaimHeld")
@pytest.mark.parametrize("owner", [ELSEWHERE, IN_AIRFLOW], ids=["process", "airflow run"])
def test_message_about_a_claim_of_a_dead_run_followed_to_the_letter(
    lake: SmallLake, shift: list[timedelta], tidegate: Command, owner: str
) -> None:
    ids = lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    lake.pipeline().propose(day(1), owner, NOW)

    code, text = tidegate("tidegate publish orders dt=2026-02-01")
    command, _, _ = told(text)

    assert code == 1
    assert tidegate(command)[0] == 1
    shift.append(CLAIM)
    assert tidegate(command)[0] == 0
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


def test_command_that_takes_over_loads_its_own_as_well(
    lake: SmallLake, shift: list[timedelta], tidegate: Command
) -> None:
    dead_ids = lake.commit({1: 4})
    lake.pipeline().plan(Run("dead", ELSEWHERE), NOW)
    own_ids = lake.commit({1: 1, 2: 1})
    shift.append(CLAIM)

    code, _ = tidegate("tidegate load orders")
    publish(lake.pipeline())

    assert code == 0
    assert lake.ids() == {"dt=2026-02-01": [*dead_ids, own_ids[0]]}


def test_run_of_airflow_that_waits_is_not_taken_over_by_time_alone(lake: SmallLake) -> None:
    lake.commit({1: 4})
    lake.pipeline().plan(Run("a", IN_AIRFLOW), NOW)
    month = later(lake.pipeline(), timedelta(days=30))

    with pytest.raises(WindowOpen, match="--take-over"):
        load(month, owner="cli")
    # The run itself goes on, also after a retry or a clear: it has the same name.
    assert load(month, owner=IN_AIRFLOW).windows == (1,)


def test_reconcile_leaves_partitions_of_living_runs_alone(lake: SmallLake) -> None:
    lake.commit({1: 4, 2: 4, 3: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    pipeline.propose(day(1), ELSEWHERE, NOW)
    pipeline.propose(day(2), IN_AIRFLOW, NOW)

    assert pipeline.pending(NOW) == (day(3),)
    assert later(pipeline, CLAIM).pending(NOW) == (day(1), day(3))


def test_reconcile_opens_its_ledger_once_for_all_partitions(lake: SmallLake) -> None:
    lake.keys = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    pipeline = lake.pipeline()
    opened: list[object] = []
    sa.event.listen(pipeline.ledger.engine, "connect", lambda *found: opened.append(found))

    assert pipeline.pending(NOW) == (day(2),)

    assert len(opened) == 1


@pytest.mark.on_disk
def test_reconcile_announces_a_held_partition_once_its_commit_has_begun(lake: SmallLake) -> None:
    lake.keys = {"rows": [{"name": "few", "where": "id > 100", "on_failure": "hold"}]}
    ids = lake.commit({1: 4, 2: 1})[:4]
    load(lake.pipeline())
    publish(lake.pipeline())
    waiting = later(lake.pipeline(), CLAIM).pending(NOW)
    decide(lake.pipeline(), day(1))
    approved = later(lake.pipeline(), CLAIM).pending(NOW)
    with pytest.raises(Died):
        lake.pipeline(Dies()).publish(day(1), ELSEWHERE, NOW)

    while_claimed = lake.pipeline().pending(NOW)
    begun = later(lake.pipeline(), CLAIM).pending(NOW)

    assert waiting == approved == while_claimed == (day(2),)
    assert begun == (day(1), day(2))
    later(lake.pipeline(), CLAIM).publish(day(1), "cli", NOW)
    assert lake.ids() == {"dt=2026-02-01": ids}
    assert lake.pipeline().pending(NOW) == (day(2),)


class Died(BaseException):
    """The process ends here."""


class Dies(LocalStorage):
    """Storage of a process that ends when it moves the first file."""

    def link_new(self, source: str, target: str) -> None:
        raise Died
