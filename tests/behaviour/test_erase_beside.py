"""Other runs work while rows are erased: nothing of these is published once nothing is left."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.test_erase import ADA, DAY_1, RUN, Died, erase, everywhere, grown
from behaviour.test_late_data import replay
from small_lake import NOW, SmallLake, day, decide, interval, load, local, publish
from tidegate.errors import ErasedSince, ErasureUnfinished
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner
from tidegate.storage import LocalStorage, OsCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

pytestmark = pytest.mark.on_disk

ANOTHER = Run("another", process_owner("another"))
FEW = {"rows": [{"name": "few", "where": "id <> 2"}]}
_SECONDS = 60
MOMENTS = [0, 1, 2, 3]
"""How often an erasure has told what it does next; it tells no more when it ends."""


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})


@dataclass(frozen=True)
class Told(OsCalls):
    """System calls that tell of the files that get or have a name."""

    tell: Callable[[str], None] = field(default=lambda _: None, hash=False)

    def create(self, path: str) -> int:
        self.tell(f"create {path}")
        made = super().create(path)
        self.tell(f"created {path}")
        return made

    def scan(self, path: str) -> Any:
        try:
            return super().scan(path)
        finally:
            self.tell(f"scanned {path}")

    def link(self, source: str, target: str) -> None:
        self.tell(f"link {target}")
        super().link(source, target)
        self.tell(f"linked {target}")


class Beside:
    """A run in a thread that stops at places, one after the other, until it may go on."""

    def __init__(self, runs: Callable[[LocalStorage], object], *places: str) -> None:
        self._places = list(places)
        self._stopped, self._may = threading.Semaphore(0), threading.Semaphore(0)
        self.refused: list[type[Exception]] = []
        self._thread = threading.Thread(target=self._run, args=(runs,))
        self._thread.start()
        self._wait(self._stopped)

    def go_on(self) -> None:
        """Let it run to its next place."""
        self._may.release()
        self._wait(self._stopped)

    def end(self) -> None:
        """Let it run to its end."""
        self._may.release()
        self._thread.join(_SECONDS)
        assert not self._places
        assert not self._thread.is_alive()

    def _run(self, runs: Callable[[LocalStorage], object]) -> None:
        try:
            runs(LocalStorage(Told(self._reach)))
        except Exception as refused:  # noqa: BLE001 - the test says which it expects
            self.refused.append(type(refused))
        finally:
            self._stopped.release()

    def _reach(self, told: str) -> None:
        if self._places and re.search(self._places[0], told):
            self._places.pop(0)
            self._stopped.release()
            self._wait(self._may)

    def _wait(self, turn: threading.Semaphore) -> None:
        assert turn.acquire(timeout=_SECONDS)


def erased_while(opened: Pipeline, where: str, moment: int, happens: Callable[[], object]) -> bool:
    """Erase rows; at a moment something else happens. Return whether nothing was left."""
    told: list[str] = []

    def tell(text: str) -> None:
        if len(told) == moment:
            happens()
        told.append(text)

    left = opened.erase(opened.erasure(where, "ada", NOW), RUN, ADA, local, tell).left
    if len(told) <= moment:
        happens()
    return not left


def with_rows_that_come(lake: SmallLake) -> None:
    """Publish rows 1 to 3; rows 4 and 5 wait in the source."""
    lake.commit({1: 3})
    load(lake.pipeline(), interval(1))
    publish(lake.pipeline())
    lake.commit({1: 2})


def loads(lake: SmallLake) -> Callable[[LocalStorage], object]:
    return lambda storage: load(lake.pipeline(storage), interval(2), owner=ANOTHER.owner)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("place", ["linked .*/messages/", r"linked .*/sealed\.json$"])
def test_load_that_was_not_announced_before_rows_are_erased_is_refused(
    lake: SmallLake, place: str, moment: int
) -> None:
    with_rows_that_come(lake)
    beside = Beside(loads(lake), place)

    erased_while(lake.pipeline(), "id = 4", moment, beside.end)

    assert beside.refused == [ErasedSince]
    # A lost ledger is restored from what this file says.
    sealed = [*(lake.work / "windows" / "000002").rglob("sealed*.json")]
    assert bool(sealed) is ("sealed" in place)
    publish(lake.pipeline())
    assert lake.ids() == {DAY_1: [1, 2, 3]}
    load(lake.pipeline(), interval(2), owner=ANOTHER.owner)
    publish(lake.pipeline())
    assert lake.pipeline().erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == {DAY_1: [1, 2, 3, 5]}
    assert everywhere(lake) == {1, 2, 3, 5}
    assert list(lake.pipeline().findings()) == []


def test_announce_that_looked_before_rows_are_erased_is_waited_for(lake: SmallLake) -> None:
    with_rows_that_come(lake)
    # The last place is in the transaction that announces, after it has looked twice for files.
    places = [r"linked .*/sealed\.json$", "scanned .*/erasures$", "scanned .*/erasures$"]
    beside = Beside(loads(lake), *places)
    soon = threading.Timer(1, beside.end)

    def tell(told: str) -> None:
        if re.search(r"^link .*/erasures/000001\.json$", told):
            beside.go_on()
            beside.go_on()
            soon.start()

    opened = lake.pipeline(LocalStorage(Told(tell)))
    nothing_left = erased_while(opened, "id = 4", 2, soon.join)

    assert beside.refused == []
    assert nothing_left
    publish(lake.pipeline())
    assert lake.ids() == {DAY_1: [1, 2, 3, 5]}
    assert everywhere(lake) == {1, 2, 3, 5}


def with_a_way_back_to_row_2(lake: SmallLake) -> Pipeline:
    """Publish row 2, then a revision without it that `undo` takes back."""
    grown(lake, 1)
    lake.commit({1: 1})
    opened = lake.pipeline(**FEW)
    load(opened, interval(2))
    publish(opened)
    replay(opened, 1)
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 3]}
    return opened


def undo(opened: Pipeline, owner: str = ANOTHER.owner) -> object:
    revision = opened.ledger.partitions.get(day(1)).revision
    return opened.undo(day(1), revision, ADA, owner, NOW)


@pytest.mark.parametrize("moment", MOMENTS)
def test_undo_that_was_not_stored_before_rows_are_erased_is_refused(
    lake: SmallLake, moment: int
) -> None:
    opened = with_a_way_back_to_row_2(lake)
    beside = Beside(
        lambda storage: undo(lake.pipeline(storage, **FEW)), "linked .*/windows/.*/part-"
    )

    erased_while(opened, "id = 2", moment, beside.end)

    assert beside.refused == [ErasureUnfinished]
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 3]}
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert everywhere(lake) == {1, 3}
    assert list(opened.findings()) == []


def test_undo_of_other_rows_than_those_that_are_erased_meanwhile_goes_on(lake: SmallLake) -> None:
    opened = with_a_way_back_to_row_2(lake)
    beside = Beside(
        lambda storage: undo(lake.pipeline(storage, **FEW)), "linked .*/windows/.*/part-"
    )

    erased_while(opened, "id = 3", 0, beside.end)

    assert beside.refused == []
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == {DAY_1: [1, 2]}
    assert everywhere(lake) == {1, 2}


def died_once_an_undo_is_stored(lake: SmallLake) -> None:
    def tell(told: str) -> None:
        if re.search(r"^link .*/publications/.*\.json$", told):
            raise Died

    with pytest.raises(Died):
        undo(lake.pipeline(LocalStorage(Told(tell)), **FEW))


@pytest.mark.parametrize("where", ["id = 2", "id in (1, 2)"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_undo_that_was_stored_before_rows_are_erased_is_not_broken(
    lake: SmallLake, moment: int, where: str
) -> None:
    opened = with_a_way_back_to_row_2(lake)
    died_once_an_undo_is_stored(lake)

    nothing_left = erased_while(opened, where, moment, lambda: publish(lake.pipeline(**FEW)))

    assert nothing_left == (2 not in lake.ids()[DAY_1])
    assert opened.erase(None, RUN, ADA, local).left == ()
    left = [1, 3] if where == "id = 2" else [3]
    assert lake.ids() == {DAY_1: left}
    assert everywhere(lake) == {*left}
    assert list(opened.findings()) == []


@pytest.mark.follows("ApprovedFirst")
def test_undo_that_was_stored_is_named_with_the_way_on(lake: SmallLake) -> None:
    opened = with_a_way_back_to_row_2(lake)
    died_once_an_undo_is_stored(lake)
    erasure = opened.erasure("id = 2", "ada", NOW)

    looked = opened.to_erase(erasure)
    (left,) = opened.erase(erasure, RUN, ADA, local).left

    assert [(file.path, file.rows) for file in looked.files] == [(left.path, 1)]
    assert (left.rows, left.partition) == (1, DAY_1)
    assert f"`tidegate publish orders {DAY_1}`" in left.done
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 2, 3]}
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert everywhere(lake) == {1, 3}


@dataclass(frozen=True)
class Listing(LocalStorage):
    """A storage in which something else happens before and after all files are listed."""

    of: str = ""
    before: Callable[[], None] = field(default=lambda: None, hash=False)
    then: Callable[[], None] = field(default=lambda: None, hash=False)

    def list_files(self, path: str, *args: Any, **keys: Any) -> Any:
        if path == self.of:
            self.before()
        found = super().list_files(path, *args, **keys)
        if path == self.of:
            self.then()
        return found


def replays(lake: SmallLake, storage: LocalStorage) -> None:
    """Read the second window again, once more if rows were erased meanwhile."""
    opened = lake.pipeline(storage, target={"rolling": {"file_size": "64MiB"}})
    for planned in (opened.replay(2, ANOTHER, NOW) for _ in range(2)):
        with contextlib.suppress(ErasedSince):
            opened.finish_load(planned, NOW, local)
            return


def test_what_a_run_writes_after_files_were_listed_is_not_missed(lake: SmallLake) -> None:
    grown(lake, 2)

    beside = Beside(functools.partial(replays, lake), "create .*/000002/.*/part-")
    opened = lake.pipeline(Listing(of=str(lake.work), then=beside.end))

    report = erase(opened, 3)

    (left,) = report.left
    assert left.path.endswith("/000002")
    assert lake.pipeline().erase(None, RUN, ADA, local).left == ()
    assert everywhere(lake) == {1, 2, 4}


def test_half_a_file_of_a_run_that_begins_while_files_are_listed_stays(lake: SmallLake) -> None:
    grown(lake, 2)
    begun: list[Beside] = []

    def begin() -> None:
        place = "created .*/000002/.*/part-"
        begun.append(Beside(functools.partial(replays, lake), place))

    erase(lake.pipeline(Listing(of=str(lake.work), before=begin)), 3)

    begun[0].end()
    assert begun[0].refused == []
    publish(lake.pipeline())
    assert lake.ids() == {DAY_1: [1, 2, 4]}
    assert lake.pipeline().erase(None, RUN, ADA, local).left == ()
    assert list(lake.pipeline().findings()) == []


def test_approved_revision_whose_rows_cannot_be_read_again_is_named_once(lake: SmallLake) -> None:
    lake.keys |= {"rows": [{"name": "few", "where": "id < 3", "on_failure": "hold"}]}
    opened = grown(lake, 2)
    decide(opened, day(1))
    shutil.rmtree(lake.root / "raw" / "raw" / "orders" / "data")
    erasure = opened.erasure("id = 3", "ada", NOW)

    looked = opened.to_erase(erasure)
    (left,) = opened.erase(erasure, RUN, ADA, local).left

    assert [(file.path, file.rows) for file in looked.files] == [(left.path, 1)]
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 2, 3, 4]}
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == {DAY_1: [1, 2, 4]}
