"""Die at every change of what becomes of late rows and of an undo, and go on.

A life copies its disk before each change, as in `walk`; each copy is lived on to the end, once with
the ledger as it was, and once with a ledger restored from the files.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from crash.faults import Stopper, stopping_storage, watch_database
from small_lake import NOW, SmallLake, day, decide, interval, load, publish
from tidegate.errors import DecisionRefused, NotHeld, NothingToUndo, PublicationLapsed
from tidegate.ledger.schema import contribution, partition
from tidegate.model.publication import Approval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidegate.pipeline import Pipeline

ADA = Approval(approved=True, by="ada", at=NOW)
FEW = 3
"""Deaths of a scenario in the usual suite."""


def _undo(opened: Pipeline) -> None:
    # One that was recorded before the process died is not undone once more.
    with contextlib.suppress(PublicationLapsed, NothingToUndo):
        opened.undo(day(1), 2, ADA, "cli", NOW)
    publish(opened)


def _reopen(opened: Pipeline) -> None:
    with contextlib.suppress(NotHeld):
        opened.reopen(day(1), NOW)
    publish(opened)


def _reject(opened: Pipeline) -> None:
    publish(opened)
    with contextlib.suppress(NotHeld, DecisionRefused):
        decide(opened, day(1), approved=False)


@dataclass(frozen=True)
class Deed:
    """What is done with late rows, and how the pipeline file says so."""

    late_data: Any
    do: Callable[[Pipeline], None]
    before: Callable[[Pipeline], object] = lambda _: None


DEEDS = {
    "released": Deed({"hold": {"rows": 2}}, publish),
    "below the late root": Deed({"side": {"path": "late"}}, publish),
    "rejected by policy": Deed("reject", publish),
    "rejected by a person": Deed("propose", _reject),
    "undone": Deed("revise", _undo, publish),
    "undone and reopened": Deed("revise", _reopen, lambda opened: (publish(opened), _undo(opened))),
    "reopened from the late root": Deed({"side": {"path": "late"}}, _reopen, publish),
}


@dataclass
class Life:
    """A lake at the one root that all lives share, because names are in the bytes."""

    root: Path
    deed: Deed

    def prepare(self) -> None:
        """Publish a day, and load late rows for it."""
        lake = SmallLake(self.root)
        lake.commit({1: 3, 2: 1})
        lake.commit({1: 2, 3: 1})
        opened = self.opened(lake)
        load(opened, interval(1))
        publish(opened)
        load(opened, interval(2))
        self.deed.before(opened)
        opened.ledger.engine.dispose()
        self.file = lake.file(commit=self._commit)

    @property
    def _commit(self) -> dict[str, Any]:
        return {"late_data": self.deed.late_data}

    def opened(self, lake: SmallLake, storage: Any = None) -> Pipeline:
        return lake.pipeline(storage, commit=self._commit)

    def again(self, storage: Any = None) -> Pipeline:
        from tidegate.pipeline import open_pipeline

        return open_pipeline(self.file, ledger=f"sqlite:///{self.root}/ledger.db", storage=storage)

    def state(self, opened: Pipeline) -> dict[str, Any]:
        """Give what readers see, and what the ledger counts."""
        found: dict[str, Any] = {"files": dict(_rows(self.root))}
        with opened.ledger.engine.connect() as connection:
            for table, names in (
                (contribution, ("window", "partition", "plan_digest", "late", "aside")),
                (partition, ("partition", "revision", "rows", "pending")),
            ):
                query = sa.select(*(table.c[name] for name in names))
                found[table.name] = sorted(map(tuple, connection.execute(query)), key=str)
        return found


def _rows(root: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield the ids of each file outside staging, and which revision each marker is of."""
    for path in sorted(root.rglob("part-*.parquet")):
        name = str(path.relative_to(root))
        if not {"staged", "retired"}.intersection(name.split("/")):
            yield name, pq.read_table(path, columns=["id"])["id"].to_pylist()
    for path in sorted(root.rglob("_SUCCESS")):
        yield str(path.relative_to(root)), []


def walk(tmp_path: Path, deed: Deed, *, restored: bool, deaths: int | None) -> None:
    """Die before each change, or before some of them, and compare with an undisturbed life."""
    life, copies = Life(tmp_path / "lake", deed), tmp_path / "copies"
    life.prepare()
    shutil.copytree(life.root, tmp_path / "begun")

    def copy() -> None:
        number = len(stopper.made)
        shutil.copytree(life.root, copies / str(number))

    stopper = Stopper(between=copy)
    opened = life.again(stopping_storage(stopper))
    watch_database(opened.ledger.engine, stopper)
    deed.do(opened)
    opened.ledger.engine.dispose()
    wanted = life.state(life.again())
    numbers = range(1, len(stopper.made) + 1)
    step = max(1, len(numbers) // deaths) if deaths else 1
    assert len(numbers) > 5

    for number in numbers[::step]:
        shutil.rmtree(life.root)
        shutil.copytree(copies / str(number), life.root)
        anew = life.again()
        if restored:
            anew.restore_ledger()
        deed.do(anew)

        died = f"died before change {number}, {stopper.made[number - 1]}"
        assert life.state(anew) == wanted, died
        anew.ledger.engine.dispose()


@pytest.mark.parametrize("name", ["released", "undone"])
def test_death_at_some_changes_leads_to_the_same_end(name: str, tmp_path: Path) -> None:
    walk(tmp_path, DEEDS[name], restored=False, deaths=FEW)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("restored", [False, True], ids=["ledger kept", "ledger restored"])
@pytest.mark.parametrize("name", DEEDS)
def test_death_at_every_change_leads_to_the_same_end(
    name: str, tmp_path: Path, *, restored: bool
) -> None:
    walk(tmp_path, DEEDS[name], restored=restored, deaths=None)
