"""A work directory from a backup beside a good ledger: what the ledger tells is not lost."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, decide, load, publish
from tidegate.cli.app import app
from tidegate.ledger.publications import Publications
from tidegate.model.publication import Override

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tidegate.model.ledger_rows import RevisionEntry

FIRST, SECOND = "dt=2026-02-01", "dt=2026-02-02"
OVERRIDE = Override("ada", NOW, "no more rows come")


class Died(BaseException):
    """No handler of errors runs for it."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    small = {"name": "small", "where": "amount < 50", "on_failure": "hold"}
    lake = SmallLake(tmp_path / "lake", keys={"rows": [small]})
    lake.found_by_name(monkeypatch)
    return lake


def typed(line: str, *codes: int) -> str:
    program, *arguments = shlex.split(line)
    assert program == "tidegate"
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code in (codes or (0,)), result.output
    return " ".join(result.output.split())


def commands(said: str) -> Iterator[str]:
    yield from dict.fromkeys(re.findall("`(tidegate [^`]*)`", said))


def save(lake: SmallLake) -> None:
    shutil.copytree(lake.work, lake.root / "yesterday")


def put_back(lake: SmallLake) -> None:
    shutil.rmtree(lake.work)
    (lake.root / "yesterday").rename(lake.work)


def held(lake: SmallLake) -> list[int]:
    """Load rows of a day that the gate holds."""
    ids = lake.commit({1: 2, 3: 1}, amount=100)[:2]
    load(lake.pipeline())
    publish(lake.pipeline())
    return ids


def facts(revisions: Sequence[RevisionEntry]) -> list[RevisionEntry]:
    return [replace(item, owner="", committed_at=NOW) for item in revisions]


def marker(lake: SmallLake) -> Path:
    return lake.target / FIRST / "_SUCCESS"


@pytest.mark.follows("StateFileLost")
@pytest.mark.parametrize("marker_is_gone", [False, True], ids=["marker stands", "marker removed"])
def test_commits_whose_plans_were_lost_are_restored_with_what_was_decided(
    lake: SmallLake, *, marker_is_gone: bool
) -> None:
    ids = held(lake)
    decide(lake.pipeline(), day(1), comment="seen")
    ids += lake.commit({1: 1, 2: 1}, amount=100)[:1]
    load(lake.pipeline())
    save(lake)
    publish(lake.pipeline())
    publish(lake.pipeline())
    decide(lake.pipeline(), day(1), comment="again")
    publish(lake.pipeline())
    lake.pipeline().publish(day(3), "cli", NOW, OVERRIDE)
    decide(lake.pipeline(), day(3))
    publish(lake.pipeline())
    ledger = lake.pipeline().ledger.publications
    revisions = {number: ledger.revisions(day(number)) for number in (1, 3)}
    assert [item.revision for item in revisions[1]] == [1, 2]
    assert revisions[3][0].override is not None
    committed = [ledger.find(day(1), item.digest) for item in revisions[1]]
    put_back(lake)
    if marker_is_gone:
        marker(lake).unlink()

    said = typed("tidegate fsck orders", 1)
    for line in commands(said):
        typed(line, 0, 3)

    for number, known in revisions.items():
        # Whose marker was gone is committed once more.
        assert facts(ledger.revisions(day(number))) == facts(known)
    assert [ledger.find(day(1), item.digest) for item in revisions[1]] == committed
    assert typed("tidegate fsck orders") == "Table, markers and ledger agree."
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids
    ids += lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.pipeline().ledger.partitions.get(day(1)).revision == 3
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids


@pytest.mark.parametrize("approved", [True, False])
def test_restoration_names_decisions_that_no_file_tells(lake: SmallLake, *, approved: bool) -> None:
    ids = held(lake)
    save(lake)
    decide(lake.pipeline(), day(1), approved=approved)
    put_back(lake)

    said = typed("tidegate fsck orders --rebuild")

    assert f"{FIRST}: the decision on it is in no file" in said
    assert f"Next: tidegate explain orders {FIRST}" in said
    (line,) = re.findall(
        r"tidegate approve orders \S+ --digest \w+", typed(f"tidegate explain orders {FIRST}")
    )
    typed(line)
    typed(f"tidegate publish orders {FIRST}")
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids


@pytest.mark.follows("StateFileLost")
def test_lost_ledger_beside_an_old_work_directory_leads_to_the_decision_again(
    lake: SmallLake,
) -> None:
    ids = held(lake)
    save(lake)
    decide(lake.pipeline(), day(1))
    publish(lake.pipeline())
    put_back(lake)
    (lake.root / "ledger.db").unlink()
    said = typed("tidegate fsck orders --rebuild", 1)
    assert "remove the marker of each such partition" in said
    marker(lake).unlink()
    for line in commands(said):
        typed(line, 0, 1, 3)

    found = typed("tidegate fsck orders", 1)

    assert "move" not in found
    (line,) = commands(found)
    (line,) = re.findall(r"tidegate approve orders \S+ --digest \w+", typed(line))
    typed(line)
    typed(f"tidegate publish orders {FIRST}")
    assert typed("tidegate fsck orders") == "Table, markers and ledger agree."
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == ids


@pytest.mark.follows("StateFileLost", "LedgerBehind")
def test_target_that_is_newer_than_ledger_and_work_directory_has_no_row_twice(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 2, 2: 1})[:2]
    load(lake.pipeline())
    publish(lake.pipeline())
    save(lake)
    shutil.copy(lake.root / "ledger.db", lake.root / "ledger.yesterday")
    ids += lake.commit({1: 2, 2: 1})[:2]
    load(lake.pipeline())
    publish(lake.pipeline())
    put_back(lake)
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    (lake.root / "ledger.yesterday").rename(lake.root / "ledger.db")
    ids += lake.commit({1: 1, 2: 1})[:1]
    # It looks at no marker: what was forgotten is taken again, with what came since.
    typed("tidegate load orders")

    (line,) = commands(typed(f"tidegate publish orders {FIRST}", 1))
    said = typed(line, 1)
    assert "remove the marker of each such partition" in said
    marker(lake).unlink()
    for line in commands(said):
        found = typed(line, 0, 1)
        for name in re.findall(r"(\S+): stands in the table, [^.]*; move it out", found):
            (lake.target / name).rename(lake.root / "away.parquet")

    assert (lake.root / "away.parquet").exists()
    assert lake.ids()[FIRST] == lake.listed_ids()[FIRST] == sorted(ids)
    assert typed("tidegate fsck orders") == "Table, markers and ledger agree."


@pytest.mark.on_disk
@pytest.mark.follows("StateFileLost")
def test_markers_of_all_commits_that_ledger_and_work_directory_forgot_are_named_at_once(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "4000")
    days = range(1, 5)
    ids = lake.commit(dict.fromkeys(days, 1) | {9: 1})[:-1]
    load(lake.pipeline())
    publish(lake.pipeline())
    save(lake)
    shutil.copy(lake.root / "ledger.db", lake.root / "ledger.yesterday")
    ids += lake.commit(dict.fromkeys(days, 1))
    load(lake.pipeline())
    publish(lake.pipeline())
    put_back(lake)
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    (lake.root / "ledger.yesterday").rename(lake.root / "ledger.db")

    said = typed("tidegate fsck orders --rebuild", 1)
    markers = [lake.target / f"dt=2026-02-{number:02d}" / "_SUCCESS" for number in days]
    assert f"({', '.join(map(str, markers))})" in said
    for path in markers:
        path.unlink()
    for line in commands(said):
        found = typed(line, 0, 1, 3)
        for name in re.findall(r"(\S+): stands in the table, [^.]*; move it out", found):
            (lake.target / name).rename(lake.root / f"{name.replace('/', '-')}")
    load(lake.pipeline())
    publish(lake.pipeline())

    assert sorted(row for rows in lake.ids().values() for row in rows) == sorted(ids)
    assert lake.ids() == lake.listed_ids()
    assert typed("tidegate fsck orders") == "Table, markers and ledger agree."


@pytest.mark.parametrize("differs", ["marker of other files", "another ledger"])
def test_commit_plan_is_not_told_by_what_does_not_fit(lake: SmallLake, differs: str) -> None:
    held(lake)
    save(lake)
    decide(lake.pipeline(), day(1))
    publish(lake.pipeline())
    put_back(lake)
    if differs == "another ledger":
        for path in (lake.target / ".tidegate.owner", lake.work / "owner.json"):
            path.write_text(re.sub(r'("ledger": ")[^"]*', r"\1another", path.read_text()))
    else:
        says = json.loads(marker(lake).read_text())
        says["files"][0]["sha256"] = "0" * 64
        marker(lake).write_text(json.dumps(says))

    said = typed("tidegate fsck orders --rebuild", 1)

    assert "remove the marker of each such partition" in said
    assert not list((lake.work / "publications" / FIRST).glob("*[0-9a-f]-[0-9].json"))


@pytest.mark.on_disk
def test_commit_plan_that_is_lost_is_not_taken_for_one_that_never_began(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are of the first revision; the marker is of the one that is lost."""
    lake.keys = {"commit": {"trigger": "process-time"}}
    lake.commit({1: 3})
    load(lake.pipeline())

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as death:
        death.setattr(Publications, "prepare", die)
        with pytest.raises(Died):
            publish(lake.pipeline())
    lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    standing = lake.pipeline().ledger.publications.revisions(day(1))[-1]
    lost = lake.work / standing.commit_plan
    lost.unlink()
    with sqlite3.connect(lake.root / "ledger.db") as ledger:
        ledger.execute("UPDATE revision SET rows = rows + 1")

    said = typed("tidegate fsck orders --rebuild", 1)

    assert f"{lost}: expected" in said
    assert lake.pipeline().ledger.partitions.get(day(1)).revision == 1


@pytest.mark.parametrize(
    "differs", ["rows = rows + 1", "files = files + 1", "digest = '0123456789abcdef'"]
)
def test_commit_plan_is_not_told_by_a_revision_that_differs_from_its_publication(
    lake: SmallLake, differs: str
) -> None:
    held(lake)
    save(lake)
    decide(lake.pipeline(), day(1))
    publish(lake.pipeline())
    put_back(lake)
    # Where a marker stands, it shows the difference by itself.
    marker(lake).unlink()
    with sqlite3.connect(lake.root / "ledger.db") as ledger:
        ledger.execute(f"UPDATE revision SET {differs}")
        if differs.startswith("digest"):
            ledger.execute(f"UPDATE publication SET {differs} WHERE state = 'recorded'")

    said = typed("tidegate fsck orders --rebuild")

    assert "and 0 revisions" in said
    assert not list((lake.work / "publications" / FIRST).glob("*[0-9a-f]-[0-9].json"))
