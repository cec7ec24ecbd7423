"""Decisions on rows that are set aside, lost with a work directory from before them."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.test_late_data import asides, check_restored, replay, with_late_rows
from behaviour.test_remedies_old_work import commands, put_back, save, typed
from behaviour.test_undo import published, undo
from small_lake import NOW, SmallLake, day, decide, interval, load, publish, stand_as_before
from tidegate.model.aside import Aside

if TYPE_CHECKING:
    from pathlib import Path

DAY_1 = "dt=2026-02-01"
AGREE = "Table, markers and ledger agree."


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    lake = SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})
    lake.found_by_name(monkeypatch)
    return lake


def restored(lake: SmallLake) -> None:
    """Put the old work directory back, and do what `fsck` says."""
    put_back(lake)
    for line in commands(typed("tidegate fsck orders", 1)):
        typed(line, 0, 3)


@pytest.mark.follows("StateFileLost")
@pytest.mark.parametrize("before_the_undo", [False, True], ids=["undone", "not yet undone"])
def test_published_rows_of_a_lost_reopen_stay_published(
    lake: SmallLake, *, before_the_undo: bool
) -> None:
    opened = published(lake, 2, 3)
    ids = lake.ids()[DAY_1]
    if before_the_undo:
        save(lake)
    undo(opened, 2)
    if not before_the_undo:
        save(lake)
    opened.reopen(day(1), NOW)
    publish(opened)

    restored(lake)

    assert typed("tidegate fsck orders") == AGREE
    ids += lake.commit({1: 1})
    load(opened, interval(3))
    publish(opened)
    assert lake.ids()[DAY_1] == lake.listed_ids()[DAY_1] == ids
    check_restored(opened)


@pytest.mark.on_disk
@pytest.mark.parametrize("late_data", ["hold", "side", "reject"])
def test_published_late_rows_of_a_lost_release_stay_published(
    lake: SmallLake, late_data: str
) -> None:
    policy: dict[str, Any] = {
        "hold": {"hold": {}},
        "side": {"side": {"path": str(lake.root / "published" / "late")}},
        "reject": "reject",
    }
    opened, ids = with_late_rows(lake, policy[late_data])
    lake.keys = {"commit": {"trigger": "process-time", "late_data": policy[late_data]}}
    publish(opened)
    save(lake)
    opened.reopen(day(1), NOW)
    publish(opened)

    restored(lake)
    publish(lake.pipeline())

    assert lake.ids()[DAY_1] == lake.listed_ids()[DAY_1] == [*ids, 6, 7]
    assert asides(opened) == {1: None, 2: None}
    assert typed("tidegate fsck orders") == AGREE


def test_published_late_rows_that_were_rejected_first_stay_published(lake: SmallLake) -> None:
    opened, ids = with_late_rows(lake, "propose")
    lake.keys = {"commit": {"late_data": "propose"}}
    publish(opened)
    decide(opened, day(1), approved=False)
    save(lake)
    opened.reopen(day(1), NOW)
    publish(opened)
    decide(opened, day(1))
    publish(opened)

    restored(lake)

    ids += [6, 7]
    assert asides(opened) == {1: None, 2: None}
    more = lake.commit({1: 1})
    load(opened, interval(3))
    publish(opened)
    decide(opened, day(1))
    publish(opened)
    assert lake.ids()[DAY_1] == lake.listed_ids()[DAY_1] == [*ids, *more]


def test_rows_that_stay_undone_are_not_released_by_the_plan_that_stands_instead(
    lake: SmallLake,
) -> None:
    opened = published(lake, 2)
    narrow = lake.pipeline(source={"read": {"filter": "id > 1"}})
    replay(narrow, 1)
    publish(narrow)
    undo(opened, 2)
    before = opened.ledger.contributions.to(day(1))
    assert [item.aside for item in before] == [Aside.UNDONE]

    opened.restore_ledger()

    assert opened.ledger.contributions.to(day(1)) == before
    assert lake.ids()[DAY_1] == [1, 2]


@pytest.mark.parametrize("lost", ["decision", "ledger", "nothing"])
def test_restoration_names_a_release_that_no_file_and_no_revision_tells(
    lake: SmallLake, lost: str
) -> None:
    opened = published(lake, 2, 3)
    ids = lake.ids()[DAY_1]
    undo(opened, 2)
    save(lake)
    shutil.copy(lake.root / "ledger.db", lake.root / "ledger.yesterday")
    opened.reopen(day(1), NOW)
    if lost == "decision":
        put_back(lake)
    if lost == "ledger":
        stand_as_before(lake.root / "ledger.db", lake.root / "ledger.yesterday")

    said = typed("tidegate fsck orders --rebuild")

    assert (f"{DAY_1}: the decision on it is in no file" in said) == (lost == "decision")
    if lost == "decision":
        said = typed(f"tidegate explain orders {DAY_1}")
        (line,) = re.findall(r"tidegate reopen orders \S+", said)
        typed(line)
    typed(f"tidegate publish orders {DAY_1}")
    assert lake.ids()[DAY_1] == lake.listed_ids()[DAY_1] == ids
