"""Erased rows that a copy from before the erasure brings back are found, and go once more."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from behaviour.test_compaction import RULE as JOINED
from behaviour.test_erase import ADA, DAY_1, RUN, erase, everywhere, grown
from behaviour.test_remedies_old_work import commands, typed
from small_lake import SmallLake, day, load, local, publish, stand_as_before
from tidegate.model.finding import FindingKind

if TYPE_CHECKING:
    from pathlib import Path

AGREE = "Table, markers and ledger agree."
GONE = f"{DAY_1}: what stands is older than revision"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    lake = SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})
    lake.found_by_name(monkeypatch)
    return lake


def places(lake: SmallLake) -> dict[str, Path]:
    return {"target": lake.target, "work": lake.work, "ledger": lake.root / "ledger.db"}


def save(lake: SmallLake) -> None:
    for name, place in places(lake).items():
        copy = shutil.copytree if place.is_dir() else shutil.copy
        copy(place, lake.root / f"{name}.before")


def put_back(lake: SmallLake, *names: str) -> None:
    for name in names:
        stand_as_before(places(lake)[name], lake.root / f"{name}.before")


@pytest.mark.parametrize("restored", [("target",), ("target", "ledger")], ids="+".join)
@pytest.mark.parametrize("is_joined", [False, True], ids=["plain", "joined since the copy"])
def test_rows_that_an_older_table_brings_back_are_told_and_erased_again(
    lake: SmallLake, restored: tuple[str, ...], *, is_joined: bool
) -> None:
    opened = grown(lake, 2)
    save(lake)
    if is_joined:
        assert opened.compact(day(1), JOINED, "cli", ADA.at) is not None
    erase(opened, 3)
    put_back(lake, *restored)

    said = typed("tidegate fsck orders --rebuild")

    assert GONE in said
    assert "took erased rows out" in said
    assert "the decision on it" not in said
    assert "Next: tidegate erase orders --again" in said
    found = typed("tidegate fsck orders", 1)
    assert "expected no erased rows, found 1" in found
    for line in commands(found):
        typed(f"{line} --yes")
    assert lake.ids() == lake.listed_ids() == {DAY_1: [1, 2, 4]}
    assert everywhere(lake) == {1, 2, 4}
    assert typed("tidegate fsck orders") == AGREE


def test_next_publish_reminds_of_rows_that_an_older_table_brought_back(lake: SmallLake) -> None:
    opened = grown(lake, 1)
    save(lake)
    erase(opened, 1)
    put_back(lake, "target", "ledger")
    typed("tidegate fsck orders --rebuild")
    lake.commit({1: 1})
    load(opened)

    said = typed("tidegate publish orders")

    assert "Next: tidegate erase orders --again" in said
    assert [it.kind for it in opened.inspect()] == [FindingKind.ERASED_ROWS]
    opened.erase(None, RUN, ADA, local)
    assert lake.ids() == {DAY_1: [2, 3]}
    lake.commit({1: 1})
    load(opened)
    assert "erase" not in typed("tidegate publish orders")


def test_publish_goes_on_and_reminds_when_it_is_not_known_what_was_erased(lake: SmallLake) -> None:
    opened = grown(lake, 1)
    lake.commit({1: 1})
    load(opened)
    erase(opened, 1)
    (lake.work / "erasures" / "000001.json").unlink()

    said = typed("tidegate publish orders")

    assert lake.ids() == {DAY_1: [2, 3]}
    assert "Next: tidegate erase orders --again" in said


def test_rows_that_came_back_with_everything_are_told_by_the_records_put_back(
    lake: SmallLake,
) -> None:
    opened = grown(lake, 1)
    save(lake)
    erase(opened, 1)
    shutil.copytree(lake.work / "erasures", lake.root / "erasures")
    put_back(lake, "target", "work", "ledger")
    shutil.copytree(lake.root / "erasures", lake.work / "erasures")

    assert [it.kind for it in opened.inspect()] == [FindingKind.ERASED_ROWS]

    opened.erase(None, RUN, ADA, local)
    assert lake.ids() == {DAY_1: [2]}
    assert list(opened.inspect()) == []


def test_partitions_that_stand_as_they_were_erased_are_not_looked_through(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = grown(lake, 2)
    erase(opened, 1)
    publish(opened)
    read: list[str] = []
    monkeypatch.setattr("tidegate.pipeline.publish.erasing.erased_in", lambda *it: read.append(it))

    assert list(opened.inspect()) == []
    assert read == []


@pytest.mark.parametrize("restored", [("target",), ("target", "ledger")], ids="+".join)
def test_undo_that_an_older_table_took_back_is_told(
    lake: SmallLake, restored: tuple[str, ...]
) -> None:
    opened = grown(lake, 2)
    save(lake)
    opened.undo(day(1), 2, ADA, "cli", ADA.at)
    assert lake.ids() == {DAY_1: [1, 2]}
    put_back(lake, *restored)

    said = typed("tidegate fsck orders --rebuild")

    assert f"{GONE} 3, which went back to revision 1" in said
    assert "the decision on it" not in said
    assert f"Next: tidegate undo orders {DAY_1}" in said
    assert lake.ids() == {DAY_1: [1, 2, 3, 4]}
    typed(f"tidegate undo orders {DAY_1} --yes")
    assert lake.ids() == lake.listed_ids() == {DAY_1: [1, 2]}
    assert typed("tidegate fsck orders") == AGREE
    assert "older" not in typed("tidegate fsck orders --rebuild")
