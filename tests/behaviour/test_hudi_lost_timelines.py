"""A Hudi table without its timeline, restored, or downgraded: each is told by its own words."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import hudi_metadata
from golden_hudi import NOW
from hudi_windows import opened, rows
from hudi_writer import HudiTable, Rows
from small_hudi import Command, commands, typed
from small_lake import load, publish
from tidegate import read_changes, read_committed
from tidegate.errors import (
    HudiHistoryLost,
    HudiInstantGone,
    HudiTableDowngraded,
    HudiTimelineGone,
)
from tidegate.pipeline import Pipeline, open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "0000-1"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
MODES = pytest.mark.parametrize("mode", ["snapshot", "complete", "rebuild_partitions"])


def row(key: str, value: str) -> dict[str, Any]:
    return {"k": key, "ts": 1, "v": value}


def made(root: Path, version: int = 9, kind: str = "MERGE_ON_READ") -> HudiTable:
    return HudiTable(root / "table", version, kind, ordering="")


def pipeline(table: HudiTable, root: Path, mode: str = "complete", **keys: Any) -> Pipeline:
    read = {"mode": mode} | ({"keys_repeat": True} if mode == "complete" else {})
    raw = {
        "name": "trips",
        "source": {"kind": "hudi", "path": str(table.root), "read": read, **keys},
        "target": {"path": str(root / "published"), "partition_by": {"part": "k"}},
        "commit": {"trigger": "process-time"},
    }
    (root / "trips.yaml").write_text(json.dumps(raw))
    return open_pipeline(root / "trips.yaml", ledger=f"sqlite:///{root}/ledger.db")


def published(root: Path) -> set[tuple[str, str]]:
    found = read_committed(str(root / "published")).to_table().to_pylist()
    return {(it["part"], it["v"]) for it in found}


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


# ── A timeline that is not there ──


def hide(table: HudiTable) -> Path:
    """Take the files of the timeline away."""
    aside = table.root.parent / "aside"
    aside.mkdir()
    for path in table.timeline.glob("2*"):
        shutil.move(path, aside / path.name)
    return aside


@VERSIONS
@MODES
@pytest.mark.follows("HudiTimelineGone")
def test_table_without_its_timeline_stops_a_load_until_it_is_back(
    tmp_path: Path, tidegate: Command, mode: str, version: int
) -> None:
    table = made(tmp_path, version)
    table.insert(GROUP, [row("a", "1")])
    load(pipeline(table, tmp_path, mode), now=NOW)
    table.insert("0000-2", [row("b", "2")])
    aside = hide(table)

    for line in ("load", "instants", "changes"):
        assert "HudiTimelineGone" in tidegate(f"tidegate {line} PIPELINE", 1)
    for path in aside.iterdir():
        shutil.move(path, table.timeline / path.name)
    tidegate("tidegate load PIPELINE")
    tidegate("tidegate publish PIPELINE")

    assert published(tmp_path) == {("a", "1"), ("b", "2")}


@VERSIONS
def test_first_look_at_a_table_without_its_timeline_finds_no_empty_table(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    table.insert(GROUP, [row("a", "1")])
    hide(table)

    with pytest.raises(HudiTimelineGone, match=str(table.timeline)):
        read_changes({"kind": "hudi", "path": str(table.root)}, mode="snapshot")


@VERSIONS
def test_new_table_has_no_rows(tmp_path: Path, version: int) -> None:
    avro = {"type": "record", "name": "r", "fields": [{"name": "k", "type": "string"}]}
    schema = {"hoodie.table.create.schema": json.dumps(avro)}
    table = HudiTable(tmp_path / "table", version, ordering="", properties=schema)
    if version >= 8:
        # A store of objects has no empty folders.
        table.timeline.rmdir()

    found = read_changes({"kind": "hudi", "path": str(table.root)}, mode="snapshot").read_all()

    assert found.num_rows == 0


@VERSIONS
@MODES
def test_checkpoint_of_a_table_without_any_write_is_gone(
    tmp_path: Path, mode: str, version: int
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    load(pipeline(table, tmp_path, mode), now=NOW)
    table.forget(first)
    table.begin("rollback").done("UNKNOWN")

    with pytest.raises(HudiInstantGone, match=first):
        load(pipeline(table, tmp_path, mode), now=NOW)
    state = pipeline(table, tmp_path, mode).checkpoint_state(NOW)
    assert state is not None
    assert state.state == "unknown"


@pytest.mark.follows("HudiInstantGone")
@MODES
@pytest.mark.parametrize("way", ["drop the target", "next write"])
def test_table_that_was_emptied_of_all_writes_is_dropped_or_published_from_its_next_write(
    tmp_path: Path, tidegate: Command, mode: str, way: str
) -> None:
    table = made(tmp_path)
    table.insert(GROUP, [row("a", "1")])
    load(pipeline(table, tmp_path, mode), now=NOW)
    publish(pipeline(table, tmp_path, mode), now=NOW)
    shutil.rmtree(table.root)
    table = made(tmp_path)
    with pytest.raises(HudiInstantGone, match="has no write now") as refused:
        load(pipeline(table, tmp_path, mode), now=NOW)

    dropping, again = commands(refused.value)
    assert dropping in tidegate(f"{again} --yes", 3).replace(" trips", " PIPELINE")
    assert published(tmp_path) == {("a", "1")}
    if way == "drop the target":
        tidegate(f"{dropping} --yes")
        assert published(tmp_path) == set()
        tidegate("tidegate load PIPELINE", 3)
    table.insert(GROUP, [row("b", "2")])
    tidegate("tidegate load PIPELINE" if way == "drop the target" else f"{again} --yes")
    tidegate("tidegate publish PIPELINE")

    assert published(tmp_path) == {("b", "2")}


@VERSIONS
@pytest.mark.parametrize(
    "mode", ["complete", "with_deletes", "changelog", "latest_state", "skip_merge"]
)
def test_table_without_a_write_has_no_rows_whatever_columns_are_asked_for(
    tmp_path: Path, tidegate: Command, mode: str, version: int
) -> None:
    table = HudiTable(tmp_path / "table", version, ordering="ts")
    source = {"kind": "hudi", "path": str(table.root), "read": {"mode": mode}}
    feed = ["_change_type"] if mode in {"with_deletes", "changelog"} else []

    assert read_changes(source).read_all().num_rows == 0
    asked = read_changes(source, columns=["k", *feed]).read_all()
    assert asked.num_rows == 0
    keys = {
        "read": {"mode": mode, "columns": ["k", "v", *feed]}
        | ({} if feed else {"keys_repeat": True})
    }
    pipeline(table, tmp_path, **keys)
    assert "tidegate" not in tidegate("tidegate load PIPELINE", 3)
    table.insert(GROUP, [row("a", "1")])
    assert len(load(pipeline(table, tmp_path, **keys), now=NOW).windows) == 1


def test_checkpoint_that_was_archived_before_a_pending_write_is_not_gone(tmp_path: Path) -> None:
    table = made(tmp_path, 6)
    first = table.insert(GROUP, [row("a", "1")])
    load(pipeline(table, tmp_path), now=NOW)
    table.begin()
    table.upsert(GROUP, Rows([row("a", "2")]))
    table.archive(first)

    found = opened(table, "complete", on_hollow_instant="block")
    checkpoint = found.source.timeline.named(found.pin, first)

    assert found.pin.head is None
    assert found.source.timeline.instants(found.pin, checkpoint) == ()


# ── A restore to a savepoint ──


def restored(table: HudiTable) -> tuple[str, str]:
    """A savepoint, a write, a restore that takes it back, and another write."""
    first = table.insert(GROUP, [row("a", "1")])
    (table.timeline / f"{first}.savepoint.inflight").touch()
    name = f"{first}_{table.tick()}.savepoint" if table.has_times else f"{first}.savepoint"
    (table.timeline / name).touch()
    return first, table.upsert(GROUP, Rows([row("a", "2")]))


def take_back(table: HudiTable, requested: str) -> None:
    for path in table.root.rglob(f".{GROUP}_*"):
        path.unlink()
    table.forget(requested)
    at = table.tick()
    name = f"{at}_{table.tick()}.restore" if table.has_times else f"{at}.restore"
    (table.timeline / name).write_bytes(hudi_metadata.restore(requested))
    table.insert("0000-2", [row("b", "3")])


@VERSIONS
@pytest.mark.parametrize("on_cleaned", ["fail", "snapshot"])
def test_checkpoint_after_a_savepoint_that_was_restored_is_gone(
    tmp_path: Path, version: int, on_cleaned: str
) -> None:
    table = made(tmp_path, version)
    _, second = restored(table)
    load(pipeline(table, tmp_path), now=NOW)
    take_back(table, second)

    with pytest.raises(HudiInstantGone, match=second):
        load(pipeline(table, tmp_path, on_cleaned=on_cleaned), now=NOW)
    assert {it[0]: it[2] for it in rows(table)} == {"a": "1", "b": "3"}


@VERSIONS
def test_checkpoint_that_no_restore_names_is_looked_for_in_the_archive(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    _, second = restored(table)
    load(pipeline(table, tmp_path), now=NOW)
    third = table.upsert(GROUP, Rows([row("a", "3")]))
    take_back(table, third)
    table.forget(second)

    with pytest.raises(HudiHistoryLost, match=second):
        load(pipeline(table, tmp_path), now=NOW)


# ── A downgrade ──


def downgrade(table: HudiTable) -> None:
    """Turn the timeline into one of version 6."""
    for path in table.timeline.glob("2*"):
        requested, _, rest = path.name.partition(".")
        path.rename(table.root / ".hoodie" / f"{requested.partition('_')[0]}.{rest}")
    shutil.rmtree(table.timeline)
    properties = table.root / ".hoodie" / "hoodie.properties"
    said = properties.read_text().replace("table.version=9", "table.version=6")
    properties.write_text(said.replace("layout.version=2", "layout.version=1"))
    table.version, table.has_times, table.timeline = 6, False, table.root / ".hoodie"


@pytest.mark.follows("HudiTableDowngraded")
def test_table_that_was_downgraded_is_published_anew_by_a_reset(
    tmp_path: Path, tidegate: Command
) -> None:
    table = made(tmp_path, kind="COPY_ON_WRITE")
    first = table.insert(GROUP, [row("a", "1")])
    lake = pipeline(table, tmp_path)
    load(lake, now=NOW)
    publish(lake, now=NOW)
    downgrade(table)
    table.insert("0000-2", [row("b", "2")])
    with pytest.raises(HudiTableDowngraded, match=f"which writes follow {first}"):
        load(pipeline(table, tmp_path), now=NOW)
    assert "the table was downgraded" in tidegate("tidegate instants PIPELINE")

    refused = tidegate("tidegate load PIPELINE", 1)
    (reset,) = commands(refused)
    tidegate(f"{reset} --yes")
    tidegate("tidegate publish PIPELINE")

    assert published(tmp_path) == {("a", "1"), ("b", "2")}


def test_downgrade_does_not_stop_a_pipeline_that_reads_whole_states(tmp_path: Path) -> None:
    table = made(tmp_path, kind="COPY_ON_WRITE")
    table.insert(GROUP, [row("a", "1")])
    load(pipeline(table, tmp_path, "snapshot"), now=NOW)
    downgrade(table)
    table.insert("0000-2", [row("b", "2")])

    lake = pipeline(table, tmp_path, "snapshot")
    load(lake, now=NOW)
    publish(lake, now=NOW)

    assert published(tmp_path) == {("a", "1"), ("b", "2")}
