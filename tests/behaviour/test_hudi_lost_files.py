"""Files that done writes of a Hudi table name are missed when they are gone, and told when cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from golden_hudi import NOW
from hudi_windows import between, opened, rows
from hudi_writer import TIME, HudiTable, Rows
from small_hudi import Command, commands, typed
from small_lake import load
from tidegate import read_changes, read_committed
from tidegate.errors import HudiChangesLost, HudiFileLost, HudiFilesCleaned
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.read.merge import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

GROUP, OTHER = "0000-1", "0000-2"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
STATES = (
    "snapshot",
    "rebuild_partitions",
    "complete",
    "with_deletes",
    "latest_state",
    "skip_merge",
)
MERGED = ("rebuild_partitions", "complete", "with_deletes")


def row(key: str, value: str, time: str = "") -> dict[str, Any]:
    return {"k": key, "ts": 1, "v": value} | ({TIME: time} if time else {})


def made(root: Path, version: int = 9, kind: str = "MERGE_ON_READ") -> HudiTable:
    return HudiTable(root / "table", version, kind, ordering="")


def partitioned(root: Path, version: int = 9, kind: str = "MERGE_ON_READ") -> HudiTable:
    columns = {"hoodie.table.partition.fields": "v"}
    return HudiTable(root / "table", version, kind, ordering="", properties=columns)


def logged(table: HudiTable) -> tuple[str, str]:
    """A base file, and two logs over it."""
    table.insert(GROUP, [row("a", "1"), row("b", "1"), row("z", "1")])
    second = table.upsert(GROUP, Rows([row("a", "2")]))
    return second, table.upsert(GROUP, Rows([row("b", "3")]))


def newest(table: HudiTable, pattern: str) -> Path:
    return sorted(table.root.rglob(pattern))[-1]


def values(found: list[tuple[Any, ...]]) -> dict[Any, Any]:
    return {it[0]: it[2] for it in found}


# ── Files that are gone ──


@VERSIONS
@pytest.mark.parametrize("pattern", [".*.log.*", "*.parquet"], ids=["log", "base file"])
@pytest.mark.parametrize("mode", STATES)
def test_state_that_lacks_a_file_is_refused(
    tmp_path: Path, mode: str, pattern: str, version: int
) -> None:
    table = made(tmp_path, version)
    logged(table)
    lost = newest(table, pattern)
    lost.unlink()

    with pytest.raises(HudiFileLost) as refused:
        rows(table, mode)

    assert str(refused.value).startswith(f"{lost}: ")
    wrote_it = table.times[-1] if "log" in lost.name else table.times[0]
    assert refused.value.instant == wrote_it


@VERSIONS
@pytest.mark.parametrize("mode", [it for it in STATES if it != "snapshot"])
def test_window_that_lacks_the_log_of_its_write_is_refused(
    tmp_path: Path, mode: str, version: int
) -> None:
    table = made(tmp_path, version)
    second, third = logged(table)
    newest(table, ".*.log.*").unlink()

    with pytest.raises(HudiFileLost, match=f"the write of {third} names it"):
        rows(table, mode, second)


@VERSIONS
@pytest.mark.parametrize("mode", MERGED)
def test_window_that_lacks_the_file_below_its_records_is_refused(
    tmp_path: Path, mode: str, version: int
) -> None:
    table = made(tmp_path, version)
    second, _ = logged(table)
    newest(table, "*.parquet").unlink()

    with pytest.raises(HudiFileLost, match=f"the write of {table.times[0]} names it"):
        rows(table, mode, second)


@VERSIONS
@pytest.mark.parametrize("mode", STATES)
def test_base_file_that_is_gone_is_not_replaced_by_an_older_one(
    tmp_path: Path, mode: str, version: int
) -> None:
    table = made(tmp_path, version, "COPY_ON_WRITE")
    first = table.insert(GROUP, [row("a", "1"), row("b", "1")])
    second = table.insert(GROUP, [row("a", "2"), row("b", "1", first)], previous=first)
    newest(table, "*.parquet").unlink()

    for start in (None, first) if mode != "snapshot" else (None,):
        with pytest.raises(HudiFileLost, match=f"the write of {second} names it"):
            rows(table, mode, start)


def test_rebuilt_partition_lacks_no_file_that_the_window_did_not_write(tmp_path: Path) -> None:
    table = partitioned(tmp_path, kind="COPY_ON_WRITE")
    first = table.insert(GROUP, [row("a", "p")], partition="p")
    table.insert(OTHER, [row("b", "p")], partition="p")
    newest(table, f"p/{GROUP}*").unlink()

    with pytest.raises(HudiFileLost, match=f"the write of {first} names it"):
        rows(table, "rebuild_partitions", first)
    assert values(rows(table, "complete", first)) == {"b": "p"}


@VERSIONS
def test_earlier_state_that_lacks_a_file_was_cleaned(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "COPY_ON_WRITE")
    first = table.insert(GROUP, [row("a", "1")])
    second = table.insert(GROUP, [row("a", "2")], previous=first)
    table.insert(GROUP, [row("a", "3")], previous=second)
    sorted(table.root.glob("*.parquet"))[1].unlink()

    with pytest.raises(HudiFilesCleaned, match=f"which the write of {second} names"):
        rows(table, "complete", first, second)
    assert values(rows(table)) == {"a": "3"}


@VERSIONS
@pytest.mark.parametrize("mode", ["with_deletes", "changelog"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_deletes_of_a_group_that_lacked_a_file_when_it_was_replaced_are_lost(
    tmp_path: Path, mode: str, version: int, kind: str
) -> None:
    table = made(tmp_path, version, kind)
    first = table.insert(GROUP, [row("a", "1")])
    if kind == "COPY_ON_WRITE":
        second = table.insert(GROUP, [row("a", "1", first), row("b", "2")], previous=first)
    else:
        second = table.upsert(GROUP, Rows([row("b", "2")]))
    lost = [path for path in table.root.iterdir() if GROUP in path.name]
    write = table.begin("replacecommit")
    write.base(OTHER, [row("c", "3")])
    write.replaced[""] = [GROUP]
    write.done("INSERT_OVERWRITE")
    told = {(it[0], it[3]) for it in rows(table, mode, second)}
    assert told == {("a", "DELETE"), ("b", "DELETE"), ("c", "UPSERT")}

    max(lost, key=lambda path: path.stat().st_mtime_ns).unlink()

    with pytest.raises(HudiChangesLost, match=second):
        rows(table, mode, second)


# ── Files that are gone, and need not be there ──


@VERSIONS
def test_files_that_a_compaction_took_the_place_of_need_not_be_there(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    logged(table)
    old = [path for path in table.root.rglob("*") if GROUP in path.name]
    table.compact(GROUP, [row("a", "2"), row("b", "3"), row("z", "1")])
    table.upsert(GROUP, Rows([row("a", "4")]))
    for path in old:
        path.unlink()

    assert values(rows(table)) == {"a": "4", "b": "3", "z": "1"}


@VERSIONS
@pytest.mark.parametrize("lost", ["logs", "base file"])
def test_log_compaction_takes_the_place_of_logs_and_not_of_their_base_file(
    tmp_path: Path, version: int, lost: str
) -> None:
    table = made(tmp_path, version)
    writes = logged(table)
    logs = list(table.root.rglob(".*.log.*"))
    service = table.begin("logcompaction")
    content = Rows([row("a", "2", writes[0]), row("b", "3", writes[1])], compacted=writes)
    service.log(GROUP, content)
    service.done("LOG_COMPACT")
    for path in logs if lost == "logs" else table.root.rglob("*.parquet"):
        path.unlink()

    if lost == "logs":
        assert values(rows(table)) == {"a": "2", "b": "3", "z": "1"}
        before = set(table.root.rglob(".*.log.*"))
        later = table.upsert(GROUP, Rows([row("b", "4")]))
        (log,) = set(table.root.rglob(".*.log.*")) - before
        log.unlink()
    with pytest.raises(HudiFileLost, match=later if lost == "logs" else r"\.parquet"):
        rows(table)


@VERSIONS
@pytest.mark.parametrize("is_archived", [False, True], ids=["active", "archived"])
def test_files_of_groups_that_were_replaced_need_not_be_there(
    tmp_path: Path, version: int, is_archived: bool
) -> None:
    table = made(tmp_path, version)
    first = table.insert(GROUP, [row("a", "1")])
    clustering = table.cluster([GROUP], OTHER, [row("a", "1", first)])
    table.upsert(OTHER, Rows([row("a", "2")]))
    newest(table, f"{GROUP}*").unlink()
    if is_archived:
        (table.timeline / f"{first}.savepoint").touch()
        table.archive(clustering)

    assert values(rows(table)) == {"a": "2"}


@VERSIONS
def test_logs_of_a_write_that_was_rolled_back_need_not_be_there(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    logged(table)
    back = table.upsert(GROUP, Rows([row("a", "no")]))
    newest(table, ".*.log.*").unlink()
    table.forget(back)

    assert values(rows(table)) == {"a": "2", "b": "3", "z": "1"}


def test_log_that_was_named_by_a_compaction_that_was_taken_back_has_another_name(
    tmp_path: Path,
) -> None:
    table = made(tmp_path, 6)
    first = table.insert(GROUP, [row("a", "1")])
    plan = table.pending("compaction", GROUP)
    table.upsert(GROUP, Rows([row("a", "2")]))
    log = newest(table, ".*.log.*")
    table.forget(plan.requested)
    log.rename(log.with_name(log.name.replace(plan.requested, first)))

    assert values(rows(table)) == {"a": "2"}


def test_log_that_is_named_by_a_pending_compaction_is_missed(tmp_path: Path) -> None:
    table = made(tmp_path, 6)
    table.insert(GROUP, [row("a", "1")])
    table.pending("compaction", GROUP)
    table.upsert(GROUP, Rows([row("a", "2")]))
    newest(table, ".*.log.*").unlink()

    with pytest.raises(HudiFileLost):
        rows(table)


# ── Logs that are shorter than they were ──


def told(table: HudiTable, mode: str, start: str | None = None) -> tuple[Any, Any]:
    """The notes of a window, and the damaged spans of its logs."""
    found = opened(table, mode)
    window = between(found, start, None)
    units = found.source.slicing.units(found.pin, window)
    reader = found.source.reading.reader(found.pin)
    list(reader.batches(units, ReadOptions()))
    return units.notes, reader.ignored.damaged


@VERSIONS
@pytest.mark.parametrize("mode", [*STATES, "changelog"])
@pytest.mark.parametrize("length", [0, 100])
def test_log_that_was_cut_is_told_as_damaged(
    tmp_path: Path, mode: str, version: int, length: int
) -> None:
    table = made(tmp_path, version)
    second, third = logged(table)
    log = newest(table, ".*.log.*")
    size = log.stat().st_size
    with log.open("r+b") as file:
        file.truncate(length)

    for start in (None, second) if mode != "snapshot" else (None,):
        if mode == "changelog" and start is None:
            continue
        notes, damaged = told(table, mode, start)
        assert damaged == {str(log): 1}
        (note,) = (it for it in notes if log.name in it)
        assert f"has {length} bytes, and the write of {third} left {size} in it" in note


def test_log_that_was_appended_to_and_cut_between_its_blocks_is_told_as_damaged(
    tmp_path: Path,
) -> None:
    table = made(tmp_path, 6)
    table.insert(GROUP, [row("a", "1"), row("b", "1")])
    write = table.begin()
    log = write.log(GROUP, Rows([row("a", "2")]))
    write.done()
    cut = log.stat().st_size
    write = table.begin()
    write.log(GROUP, Rows([row("b", "2")]), append=log)
    (stat,) = write.stats[""]
    stat |= {"logOffset": cut, "fileSizeInBytes": stat["fileSizeInBytes"] - cut}
    write.done()
    assert told(table, "snapshot") == ((), {})

    with log.open("r+b") as file:
        file.truncate(cut)

    _, damaged = told(table, "snapshot")
    assert damaged == {str(log): 1}


@VERSIONS
def test_log_of_unknown_length_is_not_doubted(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version)
    table.insert(GROUP, [row("a", "1")])
    write = table.begin()
    write.log(GROUP, Rows([row("a", "2")]))
    (stat,) = write.stats[""]
    stat.pop("fileSizeInBytes")
    write.done()

    assert told(table, "snapshot") == ((), {})
    assert values(rows(table)) == {"a": "2"}


@pytest.mark.parametrize("length", [0, 100])
def test_damage_is_told_to_whoever_looks_at_changes(
    tmp_path: Path, tidegate: Command, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    table = made(tmp_path)
    logged(table)
    pipeline(table, tmp_path)
    source = {"kind": "hudi", "path": str(table.root)}
    assert read_changes(source, mode="snapshot").read_all().num_rows == 3
    assert not caplog.messages
    log = newest(table, ".*.log.*")
    with log.open("r+b") as file:
        file.truncate(length)

    assert read_changes(source, mode="snapshot").read_all().num_rows == 3
    tidegate("tidegate changes PIPELINE --limit 2")

    said = f"{table.root}: skipped damaged spans of log files: {log} (1)"
    assert caplog.messages == [said, said]


# ── A partition that is not marked ──


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("mode", ["snapshot", "rebuild_partitions", "complete"])
def test_partition_without_its_own_file_is_read_if_a_write_names_it(
    tmp_path: Path, mode: str, version: int
) -> None:
    table = partitioned(tmp_path, version, "COPY_ON_WRITE")
    table.insert(GROUP, [row("a", "p")], partition="p")
    table.insert(OTHER, [row("b", "q")], partition="q")
    (table.root / "p" / ".hoodie_partition_metadata").unlink()

    assert values(rows(table, mode)) == {"a": "p", "b": "q"}


# ── The way out ──


def pipeline(table: HudiTable, root: Path) -> Pipeline:
    raw = {
        "name": "trips",
        "source": {
            "kind": "hudi",
            "path": str(table.root),
            "read": {"mode": "complete", "keys_repeat": True},
        },
        "target": {"path": str(root / "published"), "partition_by": {"part": "k"}},
        "commit": {"trigger": "process-time"},
    }
    (root / "trips.yaml").write_text(json.dumps(raw))
    return open_pipeline(root / "trips.yaml", ledger=f"sqlite:///{root}/ledger.db")


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return typed(tmp_path, monkeypatch)


@pytest.mark.follows("HudiFileLost")
@pytest.mark.parametrize("way", ["restored", "overwritten"])
def test_file_that_was_lost_is_restored_or_its_partition_overwritten(
    tmp_path: Path, tidegate: Command, way: str
) -> None:
    table = made(tmp_path, 9, "COPY_ON_WRITE")
    first = table.insert(OTHER, [row("a", "1")])
    load(pipeline(table, tmp_path), now=NOW)
    table.insert(OTHER, [row("a", "2"), row("b", "2")], previous=first)
    lost = newest(table, "*.parquet")
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(HudiFileLost) as refused:
        load(pipeline(table, tmp_path), now=NOW)
    checkpoint = pipeline(table, tmp_path).checkpoint_state(NOW)
    assert checkpoint is not None
    assert checkpoint.checkpoint.startswith(first)

    if way == "restored":
        lost.write_bytes(content)
    else:
        write = table.begin("replacecommit")
        write.base(GROUP, [row("b", "3")])
        write.replaced[""] = [OTHER]
        write.done("INSERT_OVERWRITE")
    (take,) = commands(refused.value)
    tidegate(take)
    tidegate("tidegate publish PIPELINE")

    found = read_committed(str(tmp_path / "published")).to_table().to_pylist()
    expected = (
        {("a", "1"), ("a", "2"), ("b", "2")} if way == "restored" else {("a", "1"), ("b", "3")}
    )
    assert {(it["part"], it["v"]) for it in found} == expected


def test_lost_file_is_told_by_the_command(tmp_path: Path, tidegate: Command) -> None:
    table = made(tmp_path)
    logged(table)
    pipeline(table, tmp_path)
    newest(table, ".*.log.*").unlink()

    assert "HudiFileLost" in tidegate("tidegate load PIPELINE", 1)
