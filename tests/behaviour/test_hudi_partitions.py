"""Pipelines that rebuild the partitions of a Hudi table which changed (HUDI-R9)."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import NOW, Golden, newest_opinion, texts
from small_hudi import Command, HudiLake, commands, typed
from tidegate.model.instant import InstantRange
from tidegate.model.plan import WindowKind
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


MODE = "rebuild_partitions"
PARTITIONED = {
    "v6_cow_part_boolean": ("p",),
    "v6_cow_part_date": ("p",),
    "v6_cow_part_int": ("p",),
    "v6_mor_part_multi_hive": ("country", "city", "day"),
    "v6_mor_part_multi_plain": ("country", "city", "day"),
    "v6_mor_part_urlencode": ("p",),
    "v8_mor_part_plain": ("p",),
    "v9_cow_part_hive": ("p",),
    "v9_cow_replace": ("p",),
    "v9_mor_replace": ("p",),
    "v9_mor_part_plain": ("p",),
    "v6_cow_replace": ("p",),
    "v8_mor_replace": ("p",),
}
WHOLE = ["v9_mor_basic", "v6_cow_basic", "v9_mor_event_time_compacted", "v9_cow_no_meta"]
"""Tables without partitions: each write changes the only one."""


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


def spelled(row: Mapping[str, Any], by: tuple[str, ...]) -> dict[str, Any]:
    """A row whose partition columns are texts, as in the path."""
    words = {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()
    }
    return {**row, **{name: words[name] for name in by if row[name] is not None}}


def forget_who_holds_windows(root: Path) -> None:
    """Let the time of a dead run be over."""
    with closing(sqlite3.connect(root / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE window SET owner = NULL, expires = NULL")


def check_each_write(lake: HudiLake) -> None:
    second = {it["as_of"]: it for it in newest_opinion(lake.case, "snapshots", "as_of")}
    compared = 0
    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take()
        if "rows" in second[requested]:
            expected = texts([spelled(row, lake.by) for row in second[requested]["rows"]])
            assert lake.published == expected, requested
            compared += 1
    assert compared


@pytest.mark.parametrize("case", PARTITIONED)
def test_published_partitions_are_the_engines_after_each_write(case: str, tmp_path: Path) -> None:
    check_each_write(HudiLake(case, tmp_path, MODE, PARTITIONED[case]))


@pytest.mark.parametrize("case", WHOLE)
def test_table_without_partitions_is_published_anew(case: str, tmp_path: Path) -> None:
    check_each_write(HudiLake(case, tmp_path, MODE))


def test_target_may_have_finer_partitions_than_the_source(tmp_path: Path) -> None:
    check_each_write(HudiLake("v9_mor_replace", tmp_path, MODE, ("p", "k")))


def test_partitions_that_did_not_change_are_not_read(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE, ("p",))
    touched = []

    for requested in lake.writes:
        lake.stand_after(requested)
        found = lake.take().partitions
        touched.append([dict(partition.values)["part_p"] for partition in found])

    assert touched[1:] == [["2024-01-01", "2024-01-03"], ["2024-01-02"]]
    kinds = [item.window.kind for item in lake.pipeline().ledger.windows.all()]
    assert kinds == [WindowKind.LOAD, WindowKind.REPLACE, WindowKind.REPLACE]


def test_windows_that_are_replayed_change_nothing(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE, ("p",))
    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take()

    lake.file()
    for sequence in (2, 3, 1):
        tidegate(f"tidegate replay trips {sequence}")
        tidegate("tidegate publish trips", 3)
        assert lake.published == lake.rows_after(lake.writes[-1])


def test_partition_that_lost_its_last_row_is_emptied(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE, ("p",))
    lake.stand_after(lake.writes[1])
    keys = {"source": {"read": {"mode": MODE, "filter": "v = 'b1'"}}}
    lake.take(**keys)
    lake.stand_after(lake.writes[2])

    lake.take(**keys)

    # The delete took `b` of the second day, which was its only row that the filter lets through.
    assert lake.columns("k", "p") == {("b", "2024-01-01"): 1}


@pytest.mark.follows("ModeChanged")
def test_window_taken_in_another_mode_is_not_replayed(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE, ("p",))
    for requested in lake.writes[:2]:
        lake.stand_after(requested)
        lake.take()
    repeating = {"source": {"read": {"mode": "complete", "keys_repeat": True}}}
    lake.file(**repeating)
    said = tidegate("tidegate replay trips 2", 1)
    assert "ModeChanged" in said
    assert "kind 'replace'" in said

    lake.file()
    tidegate("tidegate replay trips 2")
    tidegate("tidegate publish trips", 3)  # As it was.

    assert lake.published == lake.rows_after(lake.writes[1])


def test_open_window_of_another_mode_is_given_up(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, "complete", ("p",))
    repeating = {"source": {"read": {"mode": "complete", "keys_repeat": True}}}
    lake.stand_after(lake.writes[0])
    lake.take(**repeating)
    lake.stand_after(lake.writes[1])
    lake.pipeline(**repeating).plan(Run("dead", "cli"), NOW)
    lake.mode = MODE
    lake.file()
    forget_who_holds_windows(tmp_path)
    said = tidegate("tidegate load trips", 1)
    assert "PlannedOtherwise" in said
    assert "kind 'load'" in said

    tidegate("tidegate abandon trips 2 --yes")
    tidegate("tidegate load trips")
    tidegate("tidegate publish trips")

    assert lake.published == lake.rows_after(lake.writes[1])


@pytest.mark.follows("PartitionsUnlikeSource")
def test_target_without_the_sources_partitions_is_refused(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE)
    lake.stand_after(lake.writes[0])
    lake.take()
    lake.stand_after(lake.writes[1])
    lake.file()
    said = tidegate("tidegate load trips", 1)
    assert "PartitionsUnlikeSource" in said
    assert "column 'p'" in said

    lake.mode = "snapshot"
    lake.file()
    tidegate("tidegate load trips")
    tidegate("tidegate publish trips")

    assert lake.published == lake.rows_after(lake.writes[1])


@pytest.mark.follows("RowOutsideReplaced")
def test_rows_in_the_folder_of_another_partition_are_not_announced(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE, ("k",))
    properties = lake.table / ".hoodie" / "hoodie.properties"
    said = properties.read_text().replace("partition.fields=p", "partition.fields=k")
    properties.write_text(said)
    lake.stand_after(lake.writes[0])
    lake.take()
    lake.stand_after(lake.writes[1])
    lake.file()
    said = tidegate("tidegate load trips", 1)
    assert "RowOutsideReplaced" in said
    assert "'part_k=a'" in said
    assert lake.published == lake.rows_after(lake.writes[0])

    abandon, take = commands(said)
    lake.mode = "snapshot"
    lake.file()
    tidegate(f"{abandon} --yes")
    tidegate(take)
    tidegate("tidegate publish trips")

    assert lake.published == lake.rows_after(lake.writes[1])


@pytest.mark.follows("HudiPartitionUnreadable")
def test_table_whose_folders_are_named_by_formatted_values_is_read_whole(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_part_timestamp", tmp_path, MODE, ("ts",))
    lake.stand_after(lake.writes[0])
    lake.take()
    lake.stand_after(lake.writes[1])
    lake.file()
    said = tidegate("tidegate load trips", 1)
    assert "HudiPartitionUnreadable" in said
    assert "TIMESTAMP" in said

    lake.mode = "snapshot"
    lake.file()
    tidegate("tidegate load trips")
    tidegate("tidegate publish trips")

    snapshot = Golden(lake.case, "snapshot")
    assert lake.columns("k", "v") == Counter(
        (row["k"], row["v"]) for row in snapshot.rows(InstantRange(None, snapshot.writes[1]))
    )
