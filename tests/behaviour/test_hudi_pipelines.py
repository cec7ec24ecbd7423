"""Pipelines over Hudi tables: they follow the table write by write, whatever way it is cut."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from golden_hudi import NOW, Golden, answers, canonical, folder, newest_opinion, texts
from hudi_logs import rows_block
from small_hudi import Command, HudiLake, commands, typed
from small_lake import load
from tidegate.cli.status_view import summary_line
from tidegate.errors import (
    HollowInstant,
    HudiFilesCleaned,
    HudiHistoryLost,
    HudiInstantGone,
    HudiInstantUnfinished,
    LogBlockUnreadable,
    NoLogFile,
    PlacesOverlap,
    SourceFileGone,
    TidegateError,
    TimelineFileDamaged,
)
from tidegate.execute.local import LocalExecutor
from tidegate.model.instant import InstantRange
from tidegate.model.run import Run
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.read.merge import ReadOptions
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from staged_reads import StagedReads

FOLLOWED = [
    "v6_cow_basic",
    "v6_mor_basic",
    "v8_mor_basic",
    "v9_cow_replace",
    "v9_mor_replace",
    "v9_mor_compaction_inline",
    "v9_mor_event_time_compacted",
]
CUT = [
    "v9_mor_log_only_inmemory",
    "v9_mor_many_blocks",
    "v6_mor_many_blocks",
    "v9_mor_corrupt_torn_middle",
    "v9_mor_types",
]


@pytest.mark.parametrize("case", FOLLOWED)
def test_published_rows_are_the_engines_after_each_write(case: str, tmp_path: Path) -> None:
    lake = HudiLake(case, tmp_path)
    second = {it["as_of"]: it for it in newest_opinion(case, "snapshots", "as_of")}

    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take()
        if "rows" in second[requested]:
            assert lake.published == texts(second[requested]["rows"]), requested


def test_windows_of_an_insert_only_table_add_up_to_the_table(tmp_path: Path) -> None:
    lake = HudiLake("v9_cow_archived_uncleaned", tmp_path)
    keys = {"source": {"read": {"mode": "complete", "keys_repeat": True}}}

    for requested in lake.writes:
        lake.stand_after(requested)
        lake.take(**keys)

    assert lake.published == lake.rows_after(lake.writes[-1])


def test_filter_and_columns_of_the_writer_are_read(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    read = {"mode": "snapshot", "columns": ["k", "_hoodie_commit_time"], "filter": "ts > 10"}

    lake.take(source={"read": read})

    expected = [
        {"k": row["k"], "t": row["_hoodie_commit_time"]}
        for row in answers("v9_mor_basic")["head"]["rows"]
        if row["ts"] > 10
    ]
    assert lake.columns("k", "_hoodie_commit_time") == Counter(
        (row["k"], row["t"]) for row in expected
    )


@pytest.mark.parametrize("case", CUT)
@pytest.mark.parametrize("max_rows", [3, 40, 5_000_000])
def test_head_staged_by_threads_in_pieces_of_any_size_has_the_engines_rows(
    case: str, max_rows: int, local: StagedReads
) -> None:
    source = {"kind": "hudi", "path": str(folder(case)), "read": {"mode": "snapshot"}}

    table = local.table({**source, "split": {"max_rows": max_rows, "target_size": "1 KiB"}})

    assert texts(canonical(table.to_pylist(maps_as_pydicts="strict"))) == whole(case)


@pytest.mark.spark
@pytest.mark.parametrize("case", CUT)
def test_head_staged_by_spark_tasks_has_the_engines_rows(case: str, in_spark: StagedReads) -> None:
    source = {"kind": "hudi", "path": str(folder(case)), "read": {"mode": "snapshot"}}

    table = in_spark.table({**source, "split": {"max_rows": 40, "target_size": "1 KiB"}})

    assert texts(canonical(table.to_pylist(maps_as_pydicts="strict"))) == whole(case)


def whole(case: str) -> Counter[str]:
    """The rows of the head, read in one piece; the golden tests compare them with the engine's."""
    return texts(Golden(case, "snapshot").rows())


# ── Remedies, typed as they are printed ──


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


@pytest.mark.follows("HollowInstant")
def test_table_with_a_pending_write_is_loaded_up_to_it(tmp_path: Path) -> None:
    lake = HudiLake("v6_cow_inflight_left", tmp_path, mode="complete")
    keys = {"read": {"mode": "complete", "keys_repeat": True}}
    with pytest.raises(HollowInstant, match="on_hollow_instant: block"):
        load(lake.pipeline(source={**keys, "on_hollow_instant": "fail"}), now=NOW)

    lake.take(source={**keys, "on_hollow_instant": "block"})

    pending = next(
        it["requested"] for it in answers(lake.case)["timeline"] if it["state"] != "completed"
    )
    last = max(it for it in lake.writes if it < pending)
    assert lake.published == lake.rows_after(last)


@pytest.mark.follows("HudiInstantGone")
def test_table_that_was_restored_is_published_anew_by_a_reset(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path, mode="complete")
    keys = {"source": {"read": {"mode": "complete", "keys_repeat": True}}}
    lake.take(**keys)
    lake.stand_after(lake.writes[2])
    with pytest.raises(HudiInstantGone) as refused:
        load(lake.pipeline(**keys), now=NOW)

    (reset,) = commands(refused.value)
    tidegate(f"{reset} --yes")
    tidegate("tidegate publish PIPELINE")

    assert lake.published == lake.rows_after(lake.writes[2])


@pytest.mark.follows("HudiHistoryLost")
def test_table_whose_archive_is_gone_is_published_anew_by_a_reset(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_cow_many_instants", tmp_path, mode="complete")
    keys = {"source": {"read": {"mode": "complete", "keys_repeat": True}}}
    everything = sorted({path.name[:17] for path in lake.timeline.glob("2*_*")})
    lake.stand_after(everything[5])
    lake.take(**keys)
    lake.stand_after(everything[-1])
    for path in lake.timeline.glob("2*"):
        if path.name[:17] < everything[20]:
            path.unlink()
    with pytest.raises(HudiHistoryLost) as refused:
        load(lake.pipeline(**keys), now=NOW)

    (reset,) = commands(refused.value)
    tidegate(f"{reset} --yes")
    tidegate("tidegate publish PIPELINE")

    assert lake.published == whole("v9_cow_many_instants")


@pytest.mark.follows("HudiFilesCleaned")
def test_window_whose_state_was_cleaned_is_given_up_and_read_as_of_now(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_cleaned", tmp_path, mode="complete")
    source = {"read": {"mode": "complete", "keys_repeat": True}}
    limited = {"source": {**source, "limits": {"snapshots": 1}, "start": {"after": lake.first}}}
    with pytest.raises(HudiFilesCleaned) as refused:
        load(lake.pipeline(**limited), now=NOW)

    abandon, take = commands(refused.value)
    lake.pipeline(source={**source, "start": {"after": lake.first}})
    tidegate(f"{abandon} --yes", 3)  # Refused before it was taken: none is open.
    tidegate(take)
    tidegate("tidegate publish PIPELINE")

    changed = whole("v9_mor_cleaned")
    assert lake.published
    assert not lake.published - changed


@pytest.mark.follows("TimelineFileDamaged")
def test_half_written_instant_takes_nothing_until_it_is_whole(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    lake.pipeline()
    last = max(lake.timeline.glob("2*_*"))
    content = last.read_bytes()
    last.write_bytes(content[: len(content) // 2])
    with pytest.raises(TimelineFileDamaged, match=last.name):
        load(lake.pipeline(), now=NOW)

    last.write_bytes(content)
    tidegate("tidegate load PIPELINE")
    tidegate("tidegate publish PIPELINE")

    assert lake.published == whole("v9_mor_basic")


@pytest.mark.follows("HudiInstantUnfinished")
def test_instant_that_is_empty_takes_nothing_until_it_has_its_content(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    lake.pipeline()
    last = max(lake.timeline.glob("2*_*"))
    content = last.read_bytes()
    last.write_bytes(b"")
    with pytest.raises(HudiInstantUnfinished, match=last.name):
        load(lake.pipeline(), now=NOW)

    last.write_bytes(content)
    tidegate("tidegate load PIPELINE")
    tidegate("tidegate publish PIPELINE")

    assert lake.published == whole("v9_mor_basic")


@pytest.mark.follows("LogBlockUnreadable", "NoLogFile")
@pytest.mark.parametrize(
    ("error", "place"), [(NoLogFile, 0), (LogBlockUnreadable, 21)], ids=["magic", "type"]
)
def test_damaged_log_is_restored_and_its_window_finished(
    error: type[TidegateError], place: int, tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    log = next(lake.table.rglob(".*.log.*"))
    content = log.read_bytes()
    log.write_bytes(content[:place] + b"\x7f" + content[place + 1 :])
    lake.pipeline()
    said = tidegate("tidegate load PIPELINE", 1)
    assert error.__name__ in said
    assert log.name in said

    log.write_bytes(content)
    tidegate("tidegate load PIPELINE")
    tidegate("tidegate publish PIPELINE")

    assert lake.published == whole("v9_mor_basic")


@pytest.mark.follows("LogBlockUnreadable")
def test_damaged_log_that_the_table_does_without_is_given_up(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_compaction_done", tmp_path)
    before = answers(lake.case)["timeline"][1]["requested"]
    lake.stand_after(before)
    log = next(path for path in lake.table.rglob(".*.log.*") if before in path.name)
    content = log.read_bytes()
    log.write_bytes(content[:21] + b"\x7f" + content[22:])
    lake.pipeline()
    abandon, take = commands(tidegate("tidegate load PIPELINE", 1))

    lake.stand_after(lake.writes[-1])
    tidegate(f"{abandon} --yes")
    tidegate(take)
    tidegate("tidegate publish PIPELINE")

    assert lake.published == whole(lake.case)


# ── On the command line ──


def test_table_is_looked_at_by_commands(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    end = lake.writes[2]
    tidegate(f"tidegate init --from {lake.table} --name trips --out {tmp_path}/trips.yaml")

    assert "source hudi" in tidegate("tidegate check trips")
    assert "would load" in tidegate("tidegate plan trips --dry-run")
    assert "upsert" in tidegate("tidegate instants trips")
    rows = json.loads(tidegate(f"tidegate changes trips --to {end} --json"))["rows"]
    assert texts(rows) == lake.rows_after(end)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("with_deletes", ["DELETE", "UPSERT"]),
        ("changelog", ["DELETE", "UPSERT"]),
        ("rebuild_partitions", []),
    ],
)
def test_changes_are_shown_with_their_kinds(
    mode: str, expected: list[str], tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_part_plain", tmp_path)
    lake.file()

    said = tidegate(f"tidegate changes trips --mode {mode} --from {lake.writes[0]} --json")

    rows = json.loads(said)["rows"]
    assert rows
    assert sorted({row["_change_type"] for row in rows if "_change_type" in row}) == expected


def test_folder_without_properties_is_no_table(tmp_path: Path, tidegate: Command) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    lake.file()
    (lake.table / ".hoodie" / "hoodie.properties").unlink()

    said = tidegate("tidegate load PIPELINE", 1)

    assert "SourceNotFound" in said
    assert "hoodie.properties" in said


def test_properties_are_read_from_their_backup(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    properties = lake.table / ".hoodie" / "hoodie.properties"
    properties.rename(properties.with_suffix(".properties.backup"))

    lake.take()

    assert lake.published == whole("v9_mor_basic")


def test_target_in_the_folder_of_a_hudi_table_is_refused(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    other = HudiLake("v9_cow_basic", tmp_path / "other")
    target = {"path": str(other.table / "published")}

    with pytest.raises(PlacesOverlap, match=re.escape(str(other.table))):
        load(lake.pipeline(target=target), now=NOW)


@pytest.mark.parametrize("kind", ["base", "log"])
def test_file_that_vanishes_between_plan_and_read_is_named(kind: str, tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_basic", tmp_path)
    pipeline = lake.pipeline()
    planned = pipeline.plan(Run("run", "cli"), NOW)
    pattern = "*.parquet" if kind == "base" else ".*.log.*"
    gone = [path for path in lake.table.glob(pattern) if path.is_file()]
    for path in gone:
        path.unlink()

    with pytest.raises(SourceFileGone) as failed, LocalExecutor(1) as executor:
        pipeline.stage(planned[0], executor)

    assert failed.value.path in {str(path) for path in gone}


def test_log_that_grew_since_the_plan_is_read_as_planned(tmp_path: Path) -> None:
    lake = HudiLake("v6_mor_basic", tmp_path)
    table = Golden("v6_mor_basic", "snapshot", lake.table)
    window = InstantRange(None, table.writes[-1])
    units = table.source.slicing.units(table.pin, window)
    for path in lake.table.glob(".*.log.*"):
        path.write_bytes(path.read_bytes() + rows_block("20270101000000000", [{"k": "a", "n": 1}]))

    reader = table.source.reading.reader(table.pin)
    rows = [row for batch in reader.batches(units, ReadOptions()) for row in batch.to_pylist()]

    assert texts(canonical(rows)) == whole("v6_mor_basic")


def test_plan_says_what_its_mode_does_not_return(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_replace", tmp_path, mode="complete")
    keys = {"source": {"read": {"mode": "complete", "keys_repeat": True}, "start": "latest"}}
    lake.stand_after(lake.writes[0])
    lake.take(**keys)
    lake.stand_after(lake.writes[-1])

    (planned,) = lake.pipeline(**keys).plan(Run("run", "cli"), NOW)

    notes = " ".join(read_plan(LocalStorage(), planned.uri).notes)
    assert "deleted 1 row, which this mode does not return" in notes
    assert "does not tell which ones are gone" in notes


@pytest.mark.follows("HudiPartialRecords")
def test_partial_updates_are_read_with_the_rows_that_they_complete(
    tmp_path: Path, tidegate: Command
) -> None:
    lake = HudiLake("v9_mor_partial_event", tmp_path)
    keys = {"read": {"mode": "latest_state", "keys_repeat": True}, "start": "latest"}
    lake.stand_after(lake.writes[0])
    lake.take(source=keys)
    lake.stand_after(lake.writes[-1])
    said = tidegate("tidegate load PIPELINE", 1)
    assert "HudiPartialRecords" in said

    lake.pipeline(source={**keys, "read": {"mode": "complete", "keys_repeat": True}})
    abandon, take = commands(said)
    tidegate(f"{abandon} --yes")
    tidegate(take)
    tidegate("tidegate publish PIPELINE")

    assert lake.published
    assert not lake.published - lake.rows_after(lake.writes[-1])


def test_clean_that_came_after_the_timeline_was_listed_is_noticed(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_cleaned", tmp_path)
    everything = sorted({path.name[:17] for path in lake.timeline.glob("2*")})
    lake.stand_after(lake.first)
    table = Golden(lake.case, "snapshot", lake.table)
    lake.stand_after(everything[-1])

    with pytest.raises(HudiFilesCleaned):
        table.source.slicing.units(table.pin, InstantRange(None, table.writes[-1]))


def test_clean_at_work_counts_as_if_it_were_done(tmp_path: Path) -> None:
    lake = HudiLake("v9_mor_cleaned", tmp_path)
    for path in lake.timeline.glob("*_*.clean"):
        path.unlink()
    table = Golden(lake.case, "snapshot", lake.table)

    with pytest.raises(HudiFilesCleaned):
        table.source.slicing.units(table.pin, InstantRange(None, table.writes[0]))

    assert texts(table.rows()) == whole(lake.case)


@pytest.mark.parametrize("split", [{}, {"max_rows": 1}], ids=["one piece", "pieces"])
@pytest.mark.parametrize("case", ["v6_mor_corrupt_garbage_tail", "v9_mor_corrupt_torn_middle"])
def test_skipped_spans_are_said_by_the_load_and_counted_once(
    case: str, tmp_path: Path, split: dict[str, int]
) -> None:
    lake = HudiLake(case, tmp_path)

    announced = lake.take(source={"split": split})

    assert sum(lake.published.values()) == answers(case)["head"]["count"]
    ((log, spans),) = announced.summary.damaged.items()
    assert spans == 1
    assert Path(log).is_relative_to(lake.table)
    assert Path(log).is_file()
    assert "1 damaged span of 1 log file skipped" in summary_line(announced.summary)
