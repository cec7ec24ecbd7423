"""Pipelines that rebuild the partitions of a Hudi table which changed (HUDI-R9)."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import NOW, Golden, newest_opinion, texts
from hudi_writer import HudiTable, Rows
from small_hudi import Command, HudiLake, typed
from small_lake import load, publish
from tidegate import read_committed
from tidegate.model.instant import InstantRange
from tidegate.model.partition import HIVE_DEFAULT_NAME
from tidegate.model.plan import WindowKind
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tidegate.pipeline import Pipeline


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


def whole_partitions(root: Path, table: HudiTable, passing: str | None = None) -> Pipeline:
    """A pipeline that publishes by `v` what `folded` writes."""
    source = {"mode": MODE, **({"filter": passing} if passing else {})}
    raw = {
        "name": "trips",
        "source": {"kind": "hudi", "path": str(table.root), "read": source},
        "target": {"path": str(root / "published"), "partition_by": {"v": "v"}},
        "commit": {"trigger": "process-time"},
    }
    file = root / "trips.yaml"
    file.write_text(json.dumps(raw))
    return open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")


def read(root: Path) -> Counter[tuple[Any, ...]]:
    """The published rows as key, number and partition."""
    rows = read_committed(str(root / "published")).to_table().to_pylist()
    return Counter((it["k"], it["ts"], it["v"]) for it in rows)


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
    """Already before the first window, which would be published as the whole table."""
    lake = HudiLake("v9_mor_part_plain", tmp_path, MODE)
    lake.stand_after(lake.writes[1])
    file = lake.file()
    checked = " ".join(tidegate(f"tidegate check {file}", 1).split())
    refused = tidegate("tidegate load trips", 1)
    assert "PartitionsUnlikeSource" in refused
    for said in (checked, refused):
        assert "no key that is the source's partition column 'p'" in said

    lake.mode = "snapshot"
    lake.file()
    tidegate("tidegate load trips")
    tidegate("tidegate publish trips")

    assert lake.published == lake.rows_after(lake.writes[1])


def folded(root: Path, kind: str) -> HudiTable:
    """A table with the partition column `v`, whose rows stay in their folders when `v` changes."""
    fields = {"hoodie.table.partition.fields": "v"}
    return HudiTable(root / "table", kind=kind, ordering="", properties=fields)


def row(key: str, value: str | None, number: int) -> dict[str, Any]:
    return {"k": key, "ts": number, "v": value}


def write(table: HudiTable, rows: Sequence[Mapping[str, Any]], folder: str) -> None:
    """Write a folder's rows: a new base file, or a log over the first one."""
    group = f"0000-{folder}"
    if table.kind == "MERGE_ON_READ" and (table.root / folder).exists():
        table.upsert(group, Rows(rows), partition=folder)
    else:
        table.insert(group, rows, partition=folder)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_updated_row_that_stays_in_its_folder_is_published_once(kind: str, tmp_path: Path) -> None:
    """A global index that does not move rows leaves them where their key was first (HUDI-R9)."""
    table = folded(tmp_path, kind)
    pipeline = whole_partitions(tmp_path, table)

    def published() -> Counter[tuple[Any, ...]]:
        load(pipeline, now=NOW)
        publish(pipeline, now=NOW)
        return read(tmp_path)

    write(table, [row("a", "x", 1)], "x")
    write(table, [row("b", "y", 1)], "y")
    assert published() == Counter({("a", 1, "x"): 1, ("b", 1, "y"): 1})

    write(table, [row("a", "y", 2)], "x")
    write(table, [row("b", "y", 2)], "y")
    assert published() == Counter({("a", 2, "x"): 1, ("b", 2, "y"): 1})

    write(table, [row("a", "z", 3)], "x")
    assert published() == Counter({("a", 3, "x"): 1, ("b", 2, "y"): 1})


def test_rows_are_filtered_by_the_partition_that_their_folder_says(tmp_path: Path) -> None:
    table = folded(tmp_path, "COPY_ON_WRITE")
    write(table, [row("a", "y", 1)], "x")
    write(table, [row("b", "y", 1)], "y")
    pipeline = whole_partitions(tmp_path, table, "v = 'x'")

    load(pipeline, now=NOW)
    publish(pipeline, now=NOW)

    assert read(tmp_path) == Counter({("a", 1, "x"): 1})


def test_rows_without_a_value_are_in_the_default_folder(tmp_path: Path) -> None:
    """Hudi puts rows with an empty text there, too."""
    table = folded(tmp_path, "COPY_ON_WRITE")
    write(table, [row("a", "", 1), row("b", None, 1)], HIVE_DEFAULT_NAME)
    pipeline = whole_partitions(tmp_path, table)
    load(pipeline, now=NOW)
    publish(pipeline, now=NOW)
    assert read(tmp_path) == Counter({("a", 1, None): 1, ("b", 1, None): 1})

    write(table, [row("c", "x", 1)], "x")
    write(table, [], HIVE_DEFAULT_NAME)

    load(pipeline, now=NOW)
    publish(pipeline, now=NOW)

    assert read(tmp_path) == Counter({("c", 1, "x"): 1})


@pytest.mark.follows("HudiPartitionUnreadable")
def test_table_whose_folders_are_named_by_formatted_values_is_read_whole(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_part_timestamp", tmp_path, MODE, ("ts",))
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
