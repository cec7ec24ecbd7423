"""What `tidegate diff` says of two revisions of a partition, typed as a user types it."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from small_lake import SmallLake, day, interval, load, publish
from tidegate.cli.app import app
from tidegate.cli.output import FAILED, MISUSED
from tidegate.errors import RevisionFileGone, RevisionUnknown
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "dt=2026-02-01"
NARROW = {"source": {"read": {"filter": "id <> 2"}}}


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Give a lake for tests that only look: three revisions of a day."""
    lake = SmallLake(tmp_path_factory.mktemp("standing") / "lake")
    grown(lake)
    return lake


@pytest.fixture
def looked_at(standing: SmallLake, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    standing.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "4000")
    return standing


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    monkeypatch.setenv("COLUMNS", "4000")
    return lake


def typed(line: str, code: int = 0) -> str:
    program, *arguments = shlex.split(line)
    assert program == "tidegate"
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def diff(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(typed(shlex.join(["tidegate", "diff", *words, "--json"])))
    return found


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def grown(lake: SmallLake) -> None:
    """Publish three revisions of a day: four rows, two more, and a replay without row 2."""
    lake.commit({1: 4, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.commit({1: 2, 3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    narrow = lake.pipeline(**NARROW)
    load(narrow, interval(1))
    publish(narrow)


def test_newest_revision_is_compared_with_the_one_before(looked_at: SmallLake) -> None:
    found = diff("orders", FIRST)

    assert (found["from"]["revision"], found["to"]["revision"]) == (2, 3)
    assert (found["from"]["rows"], found["to"]["rows"]) == (6, 5)
    assert (found["added"], found["removed"]) == (0, 1)
    assert ids(found["rows"]["removed"]) == [2]
    assert found["common_files"] == 1


@pytest.mark.parametrize(
    ("one", "other", "added", "removed"),
    [
        pytest.param(0, 1, [1, 2, 3, 4], [], id="from the beginning"),
        pytest.param(1, 2, [6, 7], [], id="late rows"),
        pytest.param(1, 3, [6, 7], [2], id="over two"),
        pytest.param(3, 1, [2], [6, 7], id="backwards"),
        pytest.param(3, 0, [], [1, 3, 4, 6, 7], id="to the beginning"),
        pytest.param(2, 2, [], [], id="the same"),
    ],
)
def test_any_two_revisions_are_compared(
    looked_at: SmallLake, one: int, other: int, added: list[int], removed: list[int]
) -> None:
    rows = diff("orders", FIRST, str(one), str(other))["rows"]

    assert (ids(rows["added"]), ids(rows["removed"])) == (added, removed)


def test_text_for_people_tells_numbers_files_and_rows(looked_at: SmallLake) -> None:
    said = " ".join(typed(f"tidegate diff orders {FIRST} 1 3 --keys id --limit 1").split())

    assert "revisions 1 → 3 rows 4 → 5" in said
    assert "0 in both (not read), 1 in revision 1 only, 2 in revision 3 only" in said
    assert "difference +2 −1, 0 changed" in said
    assert "… and 1 more row; --limit N or --out FILE shows them." in said


def test_rows_that_changed_are_told_by_column(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1}, amount=1)
    lake.made = 0
    lake.commit({1: 3, 2: 1}, amount=9)
    pipeline = lake.pipeline(source={"read": {"filter": "amount = 1"}})
    load(pipeline)
    publish(pipeline)
    wanted = "amount = 9 and id <> 2 or amount = 1 and id = 3"
    pipeline = lake.pipeline(source={"read": {"filter": wanted}})
    typed("tidegate replay orders 1")
    publish(pipeline)

    found = diff("orders", FIRST, "--keys", "id")

    # Row 3 stays, and comes a second time; row 2 goes.
    assert (found["changed"], found["changed_columns"]) == (1, {"amount": 1})
    assert found["rows"]["changed"] == [
        {"key": {"id": 1}, "before": {"amount": 1}, "after": {"amount": 9}}
    ]
    assert ids(found["rows"]["removed"]) == [2]
    assert [(row["id"], row["amount"]) for row in found["rows"]["added"]] == [(3, 9)]


def test_whole_difference_is_written_to_a_file(looked_at: SmallLake, tmp_path: Path) -> None:
    out = tmp_path / "difference.parquet"

    typed(f"tidegate diff orders {FIRST} 1 3 --out {out}")

    rows = pq.read_table(out).select(["_diff", "id"]).to_pylist()
    assert Counter((row["_diff"], row["id"]) for row in rows) == Counter(
        [("removed", 2), ("added", 6), ("added", 7)]
    )


@pytest.mark.on_disk
@pytest.mark.follows("RevisionFileGone")
def test_file_that_was_swept_is_named_with_the_revisions_that_are_left(lake: SmallLake) -> None:
    grown(lake)
    (gone,) = (lake.work / "retired").rglob("part-*")

    typed("tidegate gc orders --older-than 0s --delete")
    said = typed(f"tidegate diff orders {FIRST} 1 3", FAILED)

    assert RevisionFileGone.__name__ in said
    assert str(gone) in said
    assert "revision 3 replaced it: `tidegate gc` or an erasure deleted it" in said
    (kept,) = re.findall(r"files are kept: ([\d, ]+)\.", said)
    assert kept == "3"
    assert diff("orders", FIRST, kept, kept)["added"] == 0
    # From now on more of them are kept.
    lake.file(retention={"revisions": 2}, **NARROW)
    lake.commit({1: 1, 4: 1})
    narrow = lake.pipeline(retention={"revisions": 2}, **NARROW)
    load(narrow)
    publish(narrow)
    wide = lake.pipeline(retention={"revisions": 2})
    load(wide, interval(1))
    publish(wide)
    typed("tidegate gc orders --older-than 0s --delete")
    assert ids(diff("orders", FIRST)["rows"]["added"]) == [2]


@pytest.mark.follows("RevisionUnknown")
def test_unknown_revision_is_chosen_among_those_that_are_listed(looked_at: SmallLake) -> None:
    said = typed(f"tidegate diff orders {FIRST} 7", MISUSED)

    assert RevisionUnknown.__name__ in said
    assert "found revisions 1 to 3" in said
    (explaining,) = re.findall("`(tidegate explain [^`]*)`", said)
    listed = json.loads(typed(f"{explaining} --json"))["revisions"]
    numbers = [str(item["revision"]) for item in listed]
    assert diff("orders", FIRST, numbers[0], numbers[-1])["removed"] == 1


def test_partition_that_is_not_published_has_no_revisions(lake: SmallLake) -> None:
    lake.commit({1: 1})
    load(lake.pipeline())

    said = typed(f"tidegate diff orders {FIRST}", MISUSED)

    assert "found none: it is not published" in said


@pytest.mark.follows("KeyUnknown")
def test_unknown_key_is_chosen_among_the_columns(looked_at: SmallLake) -> None:
    said = typed(f"tidegate diff orders {FIRST} --keys order_id", MISUSED)

    (known,) = re.findall(r"found only ([\w, ]+)\.", said)
    assert known == "id, at, amount"
    assert diff("orders", FIRST, "--keys", known)["removed"] == 1


@pytest.mark.on_disk
def test_file_that_a_commit_moves_meanwhile_is_found_where_it_goes(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    narrow = lake.pipeline(**NARROW)
    load(narrow, interval(1))
    moved: list[str] = []

    class WhileLooking(LocalStorage):
        def length(self, path: str) -> int | None:
            found = super().length(path)
            if path.endswith(".parquet") and not moved:
                moved.append(path)
                publish(narrow)
            return found

    found = lake.pipeline(WhileLooking()).difference(day(1), 0, 1)

    assert moved
    assert found.found.added == 3


def test_revision_that_was_undone_is_compared_and_its_files_are_not_missed(lake: SmallLake) -> None:
    grown(lake)
    typed("tidegate undo orders dt=2026-02-01 --yes")

    # Revision 4 is 2 again; 3 lacks a row that 2 has.
    assert ids(diff("orders", FIRST)["rows"]["added"]) == [2]
    assert diff("orders", FIRST, "2", "4")["added"] == 0
    typed("tidegate fsck orders")


def test_comparing_changes_nothing(looked_at: SmallLake) -> None:
    before = (looked_at.stamps(), sorted(looked_at.work.rglob("*")))

    diff("orders", FIRST, "1", "3", "--keys", "id")

    assert (looked_at.stamps(), sorted(looked_at.work.rglob("*"))) == before


@pytest.mark.slow
@settings(max_examples=20)
@given(lives=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=4))
def test_differences_of_a_random_life_add_up(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, bool]]
) -> None:
    lake = SmallLake(tmp_path_factory.mktemp("life") / "lake")
    states: list[Counter[int]] = [Counter()]
    for rows, replays in lives:
        lake.commit({1: rows + 1, 9: 1})
        pipeline = lake.pipeline(**(NARROW if replays else {}))
        load(pipeline)
        if replays:
            load(pipeline, interval(1))
        publish(pipeline)
        stands = Counter(lake.ids().get(FIRST, []))
        if stands != states[-1]:
            states.append(stands)
    revisions = lake.pipeline().ledger.publications.revisions(day(1))
    # A filter may take the row of the day that would have completed this one.
    assume(revisions)

    numbered = dict(zip([0, *(item.revision for item in revisions)], states, strict=True))
    for one, other in product(numbered, numbered):
        found = lake.pipeline().difference(day(1), one, other).found
        assert found.added == (numbered[other] - numbered[one]).total()
        assert found.removed == (numbered[one] - numbered[other]).total()
    assert all(one != other for one, other in combinations(numbered, 2))
