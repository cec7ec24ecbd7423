"""Windows with deletes turn each state of a Hudi table into each later one (HUDI-R6)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import NOW, RANDOM, Golden, completed, folder, texts
from hudi_opinions import (
    OTHER_STATES,
    REQUESTED_ORDER,
    WITH_META,
    alike,
    is_exempt,
    random_states,
    states,
    without,
)
from small_hudi import Command, HudiLake, commands, typed
from small_lake import load
from tidegate.config import read_source
from tidegate.errors import DeletesUnplaced, HudiChangesLost, HudiFilesCleaned
from tidegate.model.instant import InstantRange
from tidegate.source import overlooked
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tidegate.model.instant import Instant

    State = tuple[Instant, list[dict[str, Any]]]

KEY, FOLDER, TIME = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"
KIND = "_change_type"
META = (KEY, FOLDER, TIME)
BASED_ON_AN_OLDER_FILE = "_inflight_base_left"
"""Hudi based a base file on one that is older than a log: a row went back without a write of it."""


def opened(case: str, mode: str, *columns: str) -> Golden:
    """The table with the columns that tell keys and times."""
    known = Golden(case, "snapshot")
    names = known.source.reading.schema(known.pin).names
    return Golden(case, mode, read={"columns": [*names, *columns, *META]})


def own_states(case: str) -> Iterator[State]:
    """The states as Tidegate reads them, in the order of completion."""
    table = opened(case, "snapshot")
    for instant in table.writes:
        yield instant, table.rows(InstantRange(None, instant))


def followed(
    before: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Apply changes to a state: of a key's the latest, of one write's the row."""
    standing = {(row[FOLDER], row[KEY]): row for row in before}
    newest: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in sorted(changes, key=lambda row: (row[TIME], row[KIND] == "UPSERT")):
        newest[row[FOLDER], row[KEY]] = row
    for key, row in newest.items():
        standing.pop(key, None)
        if row[KIND] == "UPSERT":
            standing[key] = {name: value for name, value in row.items() if name != KIND}
    return list(standing.values())


def check(case: str, found: Iterable[State]) -> int:
    """Compare all pairs of states; the number of those whose files are there."""
    table = opened(case, "with_deletes", KIND)
    compared = 0
    for (one, before), (other, after) in combinations(found, 2):
        try:
            changes = table.rows(InstantRange(one, other))
        except (HudiFilesCleaned, HudiChangesLost):
            continue
        expected = texts([alike(row) for row in after])
        assert texts([alike(row) for row in followed(before, changes)]) == expected, (
            completed(one),
            completed(other),
        )
        compared += 1
    return compared


@pytest.mark.parametrize("case", without(*OTHER_STATES, [BASED_ON_AN_OLDER_FILE], of=WITH_META))
def test_state_with_the_changes_of_a_window_is_the_engines_next_state(case: str) -> None:
    table = Golden(case, "snapshot")
    found = list(states(case, table))

    assert check(case, found) or len(found) < 2 or is_exempt(case, ["cleaned", "archived"])


@pytest.mark.parametrize("case", [it for it in WITH_META if is_exempt(it, REQUESTED_ORDER)])
def test_state_with_changes_done_out_of_order_is_the_next_state(case: str) -> None:
    check(case, own_states(case))


@pytest.mark.parametrize("case", RANDOM)
def test_state_of_a_random_table_with_changes_is_the_engines_next_state(case: str) -> None:
    assert check(case, random_states(case, Golden(case, "snapshot")))


# ── In a pipeline ──


COLUMNS = ["k", "ts", "v", "p", KIND, *META]
FEED = {"source": {"read": {"mode": "with_deletes", "columns": COLUMNS}}}


def published(lake: HudiLake) -> list[dict[str, Any]]:
    """All published changes."""
    names = (*lake.by, "ts", "v", KIND, *META) if "k" in lake.by else COLUMNS
    return [dict(zip(names, row, strict=True)) for row in lake.columns(*names).elements()]


def test_published_changes_add_up_to_the_table(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_replace", tmp_path, by=("p",))

    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take(**FEED)
        state = texts(followed([], published(lake)))
        assert state == lake.rows_after(requested)


def test_deletes_are_published_in_the_partition_of_their_row(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, by=("p",))
    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take(**FEED)

    gone = [row for row in published(lake) if row[KIND] == "DELETE"]

    assert [(row["k"], row["p"], row["v"], row[KEY], row[TIME]) for row in gone] == [
        ("b", "2024-01-02", None, "b", lake.writes[2])
    ]


def test_filter_leaves_out_rows_and_no_delete(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, by=("p",))
    read = {"mode": "with_deletes", "columns": COLUMNS, "filter": "ts > 10"}
    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take(source={"read": read})

    found = [(row["k"], row["p"], row[KIND]) for row in published(lake)]

    assert sorted(found) == [("a", "2024-01-01", "UPSERT"), ("b", "2024-01-02", "DELETE")]


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


@pytest.mark.follows("HudiChangesLost")
def test_feed_whose_deletes_were_cleaned_begins_anew(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_cow_basic", tmp_path, by=("k",))
    columns = ["k", "ts", "v", KIND, *META]
    feed = {"source": {"read": {"mode": "with_deletes", "columns": columns}}}
    lake.stand_after(lake.writes[1])
    lake.take(**feed)
    lake.stand_after(lake.writes[2])
    next(lake.table.glob(f"*_{lake.writes[1]}.parquet")).unlink()
    with pytest.raises(HudiChangesLost) as refused:
        load(lake.pipeline(**feed), now=NOW)

    (reset,) = commands(refused.value)
    tidegate(f"{reset} --yes")
    tidegate("tidegate publish trips")

    assert lake.columns("k", "v") == rows_of_the_table(lake)
    assert {row[KIND] for row in published(lake)} == {"UPSERT"}


@pytest.mark.follows("DeletesUnplaced")
def test_upsert_whose_deletes_would_find_no_partition_is_refused(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    upsert = {"path": str(tmp_path / "published"), "write": "upsert", "keys": ["k"]}
    keys: dict[str, Any] = {"source": {"read": {"mode": "with_deletes"}}}
    by_value = {**upsert, "keys_stay": True, "partition_by": {"v": "v"}}
    with pytest.raises(DeletesUnplaced, match="'v'"):
        load(lake.pipeline(target=by_value, **keys), now=NOW)

    lake.file(target=upsert, **keys)
    tidegate("tidegate load trips")
    tidegate("tidegate publish trips")

    assert lake.columns("k", "v") == rows_of_the_table(lake)


def rows_of_the_table(lake: HudiLake) -> Counter[tuple[Any, ...]]:
    table = Golden(lake.case, "snapshot", lake.table)
    return Counter((row["k"], row["v"]) for row in table.rows())


@pytest.mark.parametrize(
    ("case", "mode", "by", "missing"),
    [
        ("v9_mor_basic", "with_deletes", "v", ["`v`"]),
        ("v9_mor_basic", "changelog", "v", ["`v`"]),
        ("v9_mor_basic", "with_deletes", "k", []),
        ("v9_mor_basic", "with_deletes", "_hoodie_partition_path", []),
        ("v9_mor_basic", "complete", "v", []),
        ("v9_cow_cdc_before_after", "changelog", "v", []),
        ("v9_cow_cdc_before_after", "with_deletes", "v", ["`v`"]),
        ("v9_cow_part_hive", "with_deletes", "p", []),
    ],
)
def test_note_of_a_check_names_the_keys_that_rows_of_deletes_do_not_have(
    case: str, mode: str, by: str, missing: list[str]
) -> None:
    config = read_source({"kind": "hudi", "path": str(folder(case)), "read": {"mode": mode}})

    notes = overlooked(config, LocalStorage(), [by])

    assert [note for name in missing for note in notes if name in note] == list(notes)
    assert len(notes) == len(missing)
