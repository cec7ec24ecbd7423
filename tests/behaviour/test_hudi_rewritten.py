"""Rows that were written anew without telling which are new are not passed over in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import NOW
from hudi_windows import rows
from hudi_writer import TIME, HudiTable, Rows
from small_hudi import Command, commands, typed
from small_lake import load, publish
from tidegate import read_committed
from tidegate.errors import (
    HudiCommitTimesLost,
    HudiCommitTimesMissing,
    HudiReplacementUnknown,
)
from tidegate.pipeline import Pipeline, open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

GROUP, OTHER = "0000-1", "0000-2"
MODES = ["complete", "with_deletes", "latest_state", "skip_merge"]
VERSIONS = pytest.mark.parametrize("version", [6, 9])


def row(key: str, value: str, time: str = "") -> dict[str, Any]:
    return {"k": key, "ts": 1, "v": value} | ({TIME: time} if time else {})


def made(root: Path, version: int = 9) -> HudiTable:
    return HudiTable(root / "table", version, ordering="")


def clustered(table: HudiTable) -> tuple[str, str]:
    """Two inserts, and a clustering that does not keep their commit times."""
    first = table.insert(GROUP, [row("a", "1")])
    second = table.insert(OTHER, [row("b", "2")])
    table.cluster([GROUP, OTHER], "0000-3", [row("a", "1"), row("b", "2")])
    return first, second


@VERSIONS
@pytest.mark.parametrize("mode", MODES)
def test_window_of_rows_that_a_clustering_wrote_with_its_own_time_is_refused(
    mode: str, version: int, tmp_path: Path
) -> None:
    table = made(tmp_path, version)
    first, _ = clustered(table)
    table.insert("0000-4", [row("c", "3")])

    with pytest.raises(HudiCommitTimesLost, match=table.times[2]):
        rows(table, mode, first)


@VERSIONS
@pytest.mark.parametrize("mode", MODES)
def test_window_of_rows_that_a_compaction_wrote_with_its_own_time_is_refused(
    mode: str, version: int, tmp_path: Path
) -> None:
    table = made(tmp_path, version)
    first = table.insert(OTHER, [row("x", "1")])
    table.insert(GROUP, [row("a", "1")])
    compaction = table.compact(GROUP, [row("a", "1")])
    table.upsert(GROUP, Rows([row("b", "3")]))

    with pytest.raises(HudiCommitTimesLost, match=compaction):
        rows(table, mode, first)


@VERSIONS
def test_rows_of_a_service_in_a_file_that_was_written_anew_since_are_found(
    version: int, tmp_path: Path
) -> None:
    """Of a file of later writes too, whose bounds say only that such rows are possible."""
    table = HudiTable(tmp_path / "table", version, "COPY_ON_WRITE", ordering="")
    first, _ = clustered(table)
    service = table.times[2]
    later = table.begin()
    standing = [row("a", "1", service), row("b", "2", service), row("c", "3")]
    later.base("0000-3", standing, previous=service)
    later.done()

    with pytest.raises(HudiCommitTimesLost, match=service):
        rows(table, "complete", first)


@VERSIONS
def test_window_after_such_a_service_is_read(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    clustered(table)
    third = table.insert("0000-4", [row("c", "3")])
    table.upsert("0000-3", Rows([row("a", "4")]))

    assert [it[:3] for it in rows(table, "complete", third)] == [("a", 1, "4")]


@VERSIONS
def test_archived_service_that_kept_no_times_is_refused_as_well(
    version: int, tmp_path: Path
) -> None:
    table = made(tmp_path, version)
    first, second = clustered(table)
    service = table.times[2]
    table.insert("0000-4", [row("c", "3")])
    table.archive(first, second, service)

    with pytest.raises(HudiCommitTimesLost, match=service):
        rows(table, "complete", first)


@VERSIONS
def test_partitions_and_states_need_no_commit_times(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    first, _ = clustered(table)
    standing = [("a", 1, "1"), ("b", 1, "2")]

    assert [it[:3] for it in rows(table, "snapshot")] == standing
    assert [it[:3] for it in rows(table, "rebuild_partitions", first)] == standing


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


def pipeline(root: Path, mode: str = "complete", **more: Any) -> Pipeline:
    read = {"mode": mode, "keys_repeat": True} if mode == "complete" else {"mode": mode}
    raw = {
        "name": "trips",
        "source": {"kind": "hudi", "path": str(root / "table"), "read": read | more},
        "target": {"path": str(root / "published"), "partition_by": {"part_k": "k"}},
        "commit": {"trigger": "process-time"},
    }
    (root / "trips.yaml").write_text(json.dumps(raw))
    return open_pipeline(root / "trips.yaml", ledger=f"sqlite:///{root}/ledger.db")


def published(root: Path) -> list[tuple[str, str]]:
    table = read_committed(str(root / "published")).to_table()
    return sorted((str(it["part_k"]), it["v"]) for it in table.to_pylist())


@pytest.mark.follows("HudiCommitTimesLost")
def test_feed_whose_commit_times_were_lost_begins_anew(tmp_path: Path, tidegate: Command) -> None:
    table = made(tmp_path)
    table.insert(GROUP, [row("a", "1")])
    load(pipeline(tmp_path), now=NOW)
    table.insert(OTHER, [row("b", "2")])
    table.cluster([GROUP, OTHER], "0000-3", [row("a", "1"), row("b", "2")])
    with pytest.raises(HudiCommitTimesLost) as refused:
        load(pipeline(tmp_path), now=NOW)

    (reset,) = commands(refused.value)
    tidegate(f"{reset} --yes")
    tidegate("tidegate publish PIPELINE")

    assert published(tmp_path) == [("a", "1"), ("b", "2")]


@pytest.mark.follows("HudiCommitTimesMissing")
@pytest.mark.parametrize(
    ("mode", "keys"),
    [
        ("complete", {}),
        ("latest_state", {"keys_repeat": True}),
        ("with_deletes", {"columns": ["k", "v", "_change_type"]}),
        ("changelog", {"columns": ["k", "v", "_change_type"]}),
    ],
)
@pytest.mark.parametrize("other", ["rebuild_partitions", "snapshot"])
def test_table_without_commit_times_is_refused_before_its_first_window(
    mode: str, keys: dict[str, Any], other: str, tmp_path: Path
) -> None:
    table = HudiTable(tmp_path / "table", ordering="", meta=False)
    table.insert(GROUP, [row("a", "1")])
    with pytest.raises(HudiCommitTimesMissing, match=rf"`{other}`"):
        load(pipeline(tmp_path, mode, **keys), now=NOW)

    found = pipeline(tmp_path, other)
    load(found, now=NOW)
    publish(found, now=NOW)
    table.insert(OTHER, [row("b", "2")])
    load(found, now=NOW)
    publish(found, now=NOW)

    assert published(tmp_path) == [("a", "1"), ("b", "2")]


def rescaled(table: HudiTable) -> tuple[str, str]:
    """An insert, and a write by an operation of a later Hudi that puts its row elsewhere."""
    first = table.insert(GROUP, [row("a", "1")])
    rescale = table.begin("replacecommit")
    rescale.base(OTHER, [row("a", "1", first)])
    rescale.replaced[""] = [GROUP]
    return first, rescale.done("BUCKET_RESCALE")


@VERSIONS
@pytest.mark.parametrize("mode", [*MODES, "changelog"])
def test_replacement_by_an_unknown_operation_tells_no_delete(
    mode: str, version: int, tmp_path: Path
) -> None:
    table = made(tmp_path, version)
    first, rescale = rescaled(table)

    with pytest.raises(HudiReplacementUnknown, match=f"{rescale}.*BUCKET_RESCALE"):
        rows(table, mode, first)
    for whole in ("snapshot", "rebuild_partitions"):
        assert [it[:3] for it in rows(table, whole, first)] == [("a", 1, "1")]


@pytest.mark.follows("HudiReplacementUnknown")
def test_feed_with_an_unknown_replacement_begins_anew(tmp_path: Path, tidegate: Command) -> None:
    table = made(tmp_path)
    table.insert("0000-4", [row("b", "1")])
    load(pipeline(tmp_path), now=NOW)
    rescaled(table)
    with pytest.raises(HudiReplacementUnknown) as refused:
        load(pipeline(tmp_path), now=NOW)

    (reset,) = commands(refused.value)
    tidegate(f"{reset} --yes")
    tidegate("tidegate publish PIPELINE")

    assert published(tmp_path) == [("a", "1"), ("b", "1")]


@VERSIONS
@pytest.mark.parametrize("mode", [*MODES, "changelog"])
def test_write_that_names_no_file_has_no_rows(mode: str, version: int, tmp_path: Path) -> None:
    """Hudi notes files that it failed to write, or that came out empty, without a path."""
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    write = table.begin()
    write.log(GROUP, Rows([row("a", "2")]))
    write.stats[""].append({"fileId": OTHER, "path": None, "numDeletes": 0})
    write.done(as_json=True)

    assert [it[:3] for it in rows(table, mode, first)] == [("a", 1, "2")]
