"""What dies, comes at once or is put back while an Iceberg table is published to.

Whatever happens, each row is in the table once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.expressions import EqualTo

from behaviour.test_late_data import rebuild
from dying import DyingCalls, Killed, each_death
from lake_target import TABLE, LakeToLake
from small_lake import DAY_1, NOW, day, decide, load, local, publish
from tidegate.errors import (
    LedgerBehind,
    SourceRefuses,
    TableBusy,
    TableCatalogRefuses,
    TableCatalogSilent,
    TableFileMissing,
    TargetTableGone,
    TargetTableMoved,
)
from tidegate.metastore.iceberg import snapshots
from tidegate.model.finding import FindingKind
from tidegate.model.held_branch import held_branch
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOLDING: dict[str, Any] = {"rows": [{"name": "few", "where": "id < 9", "on_failure": "hold"}]}
FIRST = "2026-02-01"


@pytest.fixture
def lake(tmp_path: Path) -> LakeToLake:
    return LakeToLake(tmp_path / "lake")


def published(lake: LakeToLake, days: dict[int, int]) -> list[int]:
    ids = lake.commit(days)
    load(lake.pipeline())
    publish(lake.pipeline())
    return ids


def test_two_commits_are_one(lake: LakeToLake) -> None:
    """The obvious case of what follows: nothing dies."""
    ids = published(lake, {1: 2, 2: 1})

    publish(lake.pipeline())

    assert lake.rows() == {FIRST: ids[:2]}
    assert len(lake.history()) == 1


@pytest.mark.on_disk
@each_death
def test_publish_that_dies_at_any_change_of_the_disk_is_finished_by_the_next(
    lake: LakeToLake, every: int
) -> None:
    lake.keys["target"] |= {"write": "overwrite"}
    published(lake, {1: 2, 2: 1})
    ids = lake.commit({1: 3, 3: 1})
    load(lake.pipeline())

    with lake.as_before() as put_back:
        for steps in itertools.count(0, every):
            put_back()
            left = [steps]
            dying = lake.pipeline(LocalStorage(calls=DyingCalls(left)))
            with pytest.raises(Killed) if steps < 2 else _perhaps():
                dying.publish(day(1), "cli", NOW, by_command=True)
            publish(lake.pipeline())
            assert lake.rows()[FIRST] == ids[:3], f"died at change {steps}"
            digests = [it["tidegate.publication"] for it in lake.history()]
            assert len(digests) == len({*digests})
            if left[0] >= 0:
                break


class _perhaps:  # noqa: N801 (a context as `suppress` is)
    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is None or issubclass(kind, Killed)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("death", [Killed, CommitStateUnknownException, OSError])
def test_commit_of_unknown_outcome_is_made_once(
    lake: LakeToLake,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    death: type[BaseException],
) -> None:
    published(lake, {1: 2, 2: 1})
    late = lake.commit({1: 3, 3: 1})
    load(lake.pipeline())
    fail_once(monkeypatch, moment, death)

    with pytest.raises(Killed) if death is Killed else _perhaps():
        lake.pipeline().publish(day(1), "cli", NOW, by_command=True)
    publish(lake.pipeline())

    assert lake.rows()[FIRST][-3:] == late[:3]
    assert [it["tidegate.revision"] for it in lake.history()] == ["1", "2", "1"]


def fail_once(monkeypatch: pytest.MonkeyPatch, moment: str, death: type[BaseException]) -> None:
    real, left = SqlCatalog.commit_table, [death("no answer")]

    def commit_table(catalog: SqlCatalog, *args: Any) -> Any:
        if left and moment == "before":
            raise left.pop()
        made = real(catalog, *args)
        if left:
            raise left.pop()
        return made

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)


@pytest.mark.follows("TableCatalogSilent")
def test_catalog_that_stays_silent_is_asked_by_the_next_publish(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    silent = monkeypatch.context()
    with silent as away:
        away.setattr(snapshots, "ATTEMPTS", 2)
        away.setattr(SqlCatalog, "load_table", _raising(OSError("no route")))
        with pytest.raises(TableCatalogSilent, match="no route"):
            lake.pipeline().publish(day(1), "cli", NOW)

    publish(lake.pipeline())

    assert lake.rows() == {FIRST: ids[:2]}


def _raising(failure: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise failure

    return fail


def test_rejection_stands_though_the_catalog_is_silent(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 12, 2: 1})
    load(lake.pipeline(**HOLDING))
    publish(lake.pipeline(**HOLDING))
    with monkeypatch.context() as away:
        away.setattr(snapshots, "ATTEMPTS", 1)
        away.setattr(SqlCatalog, "load_table", _raising(OSError("no route")))
        decide(lake.pipeline(**HOLDING), day(1), approved=False)
    assert held_branch(day(1)) in lake.shop.metadata.refs

    rejected = lake.pipeline().ledger.publications.proposed(day(1))
    assert rejected is not None
    assert rejected.approval is not None
    assert not rejected.approval.approved

    more = lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.rows(held_branch(day(1)))[FIRST][-1:] == more[:1]
    assert lake.rows() == {}


def test_partitions_published_at_once_are_all_there(lake: LakeToLake) -> None:
    ids = lake.commit(dict.fromkeys(range(1, 8), 2) | {9: 1})
    load(lake.pipeline())
    # Opened before the first begins: a lake writes its pipeline file whenever it opens one.
    pipelines = {number: lake.pipeline() for number in range(1, 8)}
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            pipelines[number].publish(day(number), f"run-{number}", NOW)
        except BaseException as failed:  # noqa: BLE001 (of a thread)
            failures.append(failed)

    threads = [threading.Thread(target=run, args=(number,)) for number in pipelines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert [number for day_ids in lake.rows().values() for number in day_ids] == ids[:-1]
    assert len(lake.history()) == 7


def append_amid_a_commit(lake: LakeToLake, patch: pytest.MonkeyPatch) -> None:
    """Let another writer append to day 20 just before the next commit reaches the catalog."""
    real, foreign = SqlCatalog.commit_table, [20]

    def commit_table(catalog: SqlCatalog, *args: Any) -> Any:
        if foreign:
            append(lake, foreign.pop())
        return real(catalog, *args)

    patch.setattr(SqlCatalog, "commit_table", commit_table)


def test_commit_of_another_writer_at_the_same_moment_is_kept(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(lake, {1: 2, 2: 1})
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    append_amid_a_commit(lake, monkeypatch)

    publish(lake.pipeline())

    assert lake.rows()[FIRST][-1:] == late[:1]
    assert lake.rows()["2026-02-20"] == [1000]


@pytest.mark.parametrize("holds", [False, True])
def test_commit_to_another_branch_at_the_same_moment_is_kept(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch, *, holds: bool
) -> None:
    keys: dict[str, Any] = {"commit": {"require": ["approval"]}} if holds else {}
    first = published(lake, {1: 2, 2: 1})
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline(**keys))
    table = lake.shop
    table.manage_snapshots().create_branch(table.refs()["main"].snapshot_id, "audit").commit()
    real, foreign = SqlCatalog.commit_table, [20]

    def commit_table(catalog: SqlCatalog, *args: Any) -> Any:
        if foreign:
            append(lake, foreign.pop(), "audit")
        return real(catalog, *args)

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)

    lake.pipeline(**keys).publish(day(1), "cli", NOW, by_command=True)

    expected = {FIRST: [*first[:2], *late[:1]]}
    assert lake.rows(held_branch(day(1)) if holds else "main") == expected
    assert lake.rows("audit") == {FIRST: first[:2], "2026-02-20": [1000]}


def test_table_that_others_change_all_the_time_is_published_to_later(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(lake, {1: 2, 2: 1})
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    with monkeypatch.context() as busy:
        busy.setattr(snapshots, "ATTEMPTS", 2)
        real, inside = SqlCatalog.commit_table, []

        def commit_table(catalog: SqlCatalog, *args: Any) -> Any:
            if not inside:
                inside.append(1)
                append(lake, 20)
                inside.clear()
            return real(catalog, *args)

        busy.setattr(SqlCatalog, "commit_table", commit_table)
        with pytest.raises(TableBusy):
            lake.pipeline().publish(day(1), "cli", NOW)

    publish(lake.pipeline())

    assert lake.rows()[FIRST][-1:] == late[:1]


def append(lake: LakeToLake, number: int, branch: str = "main") -> None:
    """Append a row of a day as another writer does."""
    table = lake.shop
    columns = table.schema().as_arrow()
    row = {"id": 1000, "at": DAY_1, "amount": 0, "dt": f"2026-02-{number:02d}"}
    table.append(pa.Table.from_pylist([row], columns), branch=branch)


@pytest.mark.follows("TargetTableMoved")
@pytest.mark.parametrize("change", ["delete", "append", "rows"])
def test_change_of_the_partition_by_another_writer_is_named_and_replaced_if_asked(
    lake: LakeToLake, change: str
) -> None:
    first = published(lake, {1: 3, 2: 1})
    if change == "delete":
        lake.shop.delete(EqualTo("dt", FIRST))
    elif change == "rows":
        lake.shop.delete(EqualTo("id", first[0]))
    else:
        append(lake, 1)
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())

    with pytest.raises(TargetTableMoved) as refused:
        lake.pipeline().publish(day(1), "cli", NOW)
    before = lake.rows()
    replacing = {"target": {"on_foreign_change": "replace"}}
    lake.pipeline(**replacing).publish(day(1), "cli", NOW, by_command=True)

    assert str(lake.shop.metadata.refs["main"].snapshot_id) not in str(refused.value)
    assert "revision 1" in str(refused.value)
    assert "'main'" in str(refused.value)
    assert f"`tidegate publish PIPELINE dt={FIRST}`" in str(refused.value)
    assert before.get(FIRST, []) != [*first[:3], late[0]]
    assert lake.rows()[FIRST] == [*first[:3], late[0]]


@pytest.mark.parametrize("waits", [False, True])
def test_change_by_another_writer_is_replaced_by_what_the_check_of_all_files_says(
    lake: LakeToLake, *, waits: bool
) -> None:
    first = published(lake, {1: 3, 2: 1})
    append(lake, 1)
    late = lake.commit({1: 1, 3: 1})[:1] if waits else []
    if waits:
        load(lake.pipeline())
    (told,) = [it for it in lake.pipeline().inspect() if it.kind is FindingKind.TABLE_DIFFERS]
    typed = re.findall("`tidegate (rebuild|publish) orders dt=2026-02-01`", told.text)

    replacing = lake.pipeline(target={"on_foreign_change": "replace"})
    for verb in typed[1:]:
        if verb == "rebuild":
            rebuild(replacing, 1)
        else:
            replacing.publish(day(1), "cli", NOW, by_command=True)

    assert typed[1:] == ([] if waits else ["rebuild"]) + ["publish"]
    assert lake.rows()[FIRST] == [*first[:3], *late]
    assert list(lake.pipeline().findings()) == []


def test_refused_publish_begins_no_commit(lake: LakeToLake) -> None:
    published(lake, {1: 3, 2: 1})
    lake.shop.delete(EqualTo("dt", FIRST))
    lake.commit({1: 1, 3: 1})
    load(lake.pipeline())

    with pytest.raises(TargetTableMoved):
        lake.pipeline().publish(day(1), "cli", NOW)

    assert lake.pipeline().ledger.publications.unrecorded(day(1)) is None


def test_expired_snapshots_are_not_needed(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = published(lake, {1: 3, 2: 1})
    late = lake.commit({1: 2, 3: 1})
    load(lake.pipeline())
    with monkeypatch.context() as dying:
        fail_once(dying, "after", Killed)
        with pytest.raises(Killed):
            lake.pipeline().publish(day(1), "cli", NOW, by_command=True)
    append(lake, 20)
    table = lake.shop
    old = [it.snapshot_id for it in table.snapshots()][:-1]
    table.maintenance.expire_snapshots().by_ids(old).commit()

    publish(lake.pipeline())

    assert lake.rows()[FIRST] == [*first[:3], *late[:2]]
    added = [it for it in lake.history() if it.get("tidegate.revision") == "2"]
    assert added == []


@pytest.mark.follows("TargetTableMoved")
@pytest.mark.parametrize("comes", [True, False])
def test_restored_catalog_is_named_and_brought_up_to_date(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch, *, comes: bool
) -> None:
    first = published(lake, {1: 3, 2: 1})
    old = lake.root / "catalog.old"
    shutil.copy(lake.root / "catalog.db", old)
    second = published(lake, {1: 2, 3: 1})
    third = lake.commit({1: 1, 3: 1}) if comes else []
    if comes:
        load(lake.pipeline())
    shutil.copy(old, lake.root / "catalog.db")
    assert lake.rows()[FIRST] == first[:3]
    if comes:
        with pytest.raises(TargetTableMoved):
            lake.pipeline().publish(day(1), "cli", NOW)
    told = [it for it in lake.pipeline().inspect() if it.kind is FindingKind.TABLE_DIFFERS]
    assert told[0].where == "shop.orders: dt=2026-02-01"

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.rows() == {FIRST: [*first[:3], *second[:2], *third[:1]], "2026-02-02": first[3:]}
    assert list(lake.pipeline().findings()) == []


@contextlib.contextmanager
def refusing_catalog(status: int) -> Iterator[tuple[str, list[str]]]:
    """Run a REST catalog that refuses everything; its address, and what it was asked."""
    asked: list[str] = []
    said = {"message": "not for you", "type": "ForbiddenException", "code": status}

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"error": said}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.mark.follows("SourceRefuses")
def test_catalog_of_the_source_that_refuses_is_asked_once(lake: LakeToLake) -> None:
    ids = lake.commit({1: 2, 2: 1})
    right = lake.source["catalog"]
    with refusing_catalog(403) as (uri, asked):
        lake.source["catalog"] = {"name": "lake", "type": "rest", "uri": uri}
        with pytest.raises(SourceRefuses, match="not for you"):
            load(lake.pipeline())
    assert len(asked) == 1

    # What the message says to do.
    lake.source["catalog"] = right
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.rows() == {FIRST: ids[:2]}


@pytest.mark.follows("TableCatalogRefuses")
@pytest.mark.parametrize("status", [400, 401, 403])
def test_catalog_that_refuses_is_asked_once(lake: LakeToLake, status: int) -> None:
    ids = lake.commit({1: 2, 2: 1})
    load(lake.pipeline())
    with refusing_catalog(status) as (uri, asked):
        refusing = {"name": "lake", "type": "rest", "uri": uri, "warehouse": None}
        other = lake.pipeline(target={"catalog": refusing})
        with pytest.raises(TableCatalogRefuses, match="not for you"):
            other.publish(day(1), "cli", NOW, by_command=True)
    assert len(asked) == 1

    # What the message says to do.
    lake.pipeline().publish(day(1), "cli", NOW, by_command=True)
    assert lake.rows() == {FIRST: ids[:2]}


@pytest.mark.follows("TargetTableGone")
@pytest.mark.parametrize("is_new", [True, False])
def test_dropped_table_is_named_and_made_again_with_all_rows(
    lake: LakeToLake, *, is_new: bool
) -> None:
    first = published(lake, {1: 2, 2: 1, 3: 1})
    second = published(lake, {1: 1, 4: 1})
    lake.shop.catalog.drop_table(TABLE)
    comes = day(4) if is_new else day(1)
    third = lake.commit({4 if is_new else 1: 1, 5: 1})
    load(lake.pipeline())

    with pytest.raises(TargetTableGone, match=f"dt={FIRST} was published to it"):
        lake.pipeline().publish(comes, "cli", NOW, by_command=True)
    assert lake.pipeline().ledger.publications.unrecorded(comes) is None
    assert not lake.catalog.table_exists(TABLE)
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    expected = {
        FIRST: [*first[:2], second[0]],
        "2026-02-02": first[2:3],
        "2026-02-03": first[3:],
        "2026-02-04": [second[1]],
    }
    expected[comes.values[0][1] or ""].append(third[0])
    assert lake.rows() == expected
    assert list(lake.pipeline().findings()) == []


@pytest.mark.on_disk
@pytest.mark.follows("TableFileMissing")
@pytest.mark.parametrize("kind", ["metadata", "list"])
def test_missing_file_of_the_table_is_named_and_not_asked_for_again(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    first = published(lake, {1: 2, 2: 1})
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    lost = missing(lake, kind)
    content = lost.read_bytes()
    lost.unlink()
    monkeypatch.setattr(snapshots, "ATTEMPTS", 1_000_000)

    with pytest.raises(TableFileMissing, match=lost.name):
        lake.pipeline().publish(day(1), "cli", NOW)
    lost.write_bytes(content)
    publish(lake.pipeline())

    assert lake.rows()[FIRST] == [*first[:2], late[0]]


def missing(lake: LakeToLake, kind: str) -> Path:
    """Return a file of the table without which the published branch cannot be read."""
    snapshot = lake.shop.current_snapshot()
    assert snapshot is not None
    named = lake.shop.metadata_location if kind == "metadata" else snapshot.manifest_list
    return Path(named.removeprefix("file://"))


@pytest.mark.on_disk
@pytest.mark.follows("TableFileMissing")
@pytest.mark.parametrize("kind", ["metadata", "list"])
def test_table_of_an_older_metadata_file_is_brought_up_to_date(lake: LakeToLake, kind: str) -> None:
    first = published(lake, {1: 2, 2: 1})
    older = lake.shop.metadata_location
    late = published(lake, {1: 1, 3: 1})
    missing(lake, kind).unlink()
    told = [it.error for it in lake.pipeline().inspect() if it.kind is FindingKind.TABLE_DIFFERS]
    assert {*told} == {"TableFileMissing"}
    catalog = lake.catalog
    catalog.drop_table(TABLE)
    catalog.register_table(TABLE, older)

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.rows()[FIRST] == [*first[:2], late[0]]
    assert list(lake.pipeline().findings()) == []


def test_dropped_table_is_not_made_for_what_is_held(lake: LakeToLake) -> None:
    published(lake, {1: 2, 2: 1})
    lake.shop.catalog.drop_table(TABLE)
    lake.commit({2: 1, 3: 1})
    holding: dict[str, Any] = {"commit": {"require": ["approval"]}}
    load(lake.pipeline(**holding))

    with pytest.raises(TargetTableGone):
        lake.pipeline(**holding).publish(day(2), "cli", NOW)

    assert not lake.catalog.table_exists(TABLE)


@pytest.mark.follows("TargetTableGone")
def test_table_whose_files_were_deleted_too_is_read_from_the_source_again(
    lake: LakeToLake,
) -> None:
    first = published(lake, {1: 2, 2: 1, 3: 1})
    lake.shop.catalog.drop_table(TABLE)
    for path in lake.data.rglob("part-*"):
        path.unlink()
    late = lake.commit({1: 1, 4: 1})
    load(lake.pipeline())
    with pytest.raises(TargetTableGone):
        lake.pipeline().publish(day(3), "cli", NOW)

    lake.pipeline().drop("cli", NOW)
    load(lake.pipeline())
    publish(lake.pipeline())

    expected = {FIRST: [*first[:2], late[0]], "2026-02-02": first[2:3], "2026-02-03": first[3:]}
    assert lake.rows() == expected
    assert list(lake.pipeline().findings()) == []


def test_table_that_is_dropped_amid_a_commit_is_not_made_empty(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = published(lake, {1: 2, 2: 1})
    late = lake.commit({1: 1, 3: 1})
    load(lake.pipeline())
    with monkeypatch.context() as dying:
        fail_once(dying, "before", Killed)
        with pytest.raises(Killed):
            lake.pipeline().publish(day(1), "cli", NOW)
    lake.shop.catalog.drop_table(TABLE)

    with pytest.raises(TargetTableGone):
        lake.pipeline().publish(day(1), "cli", NOW)
    assert not lake.catalog.table_exists(TABLE)
    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.rows()[FIRST] == [*first[:2], late[0]]
    assert list(lake.pipeline().findings()) == []


def test_erasure_is_told_and_repeated_in_a_table_that_is_made_again(lake: LakeToLake) -> None:
    first = published(lake, {1: 2, 2: 1})
    opened = lake.pipeline()
    said = Approval(approved=True, by="ada", at=NOW, comment="")
    erasure = opened.erasure(f"id = {first[0]}", "ada", NOW)
    opened.erase(erasure, Run("erase", "cli"), said, local)
    assert lake.rows() == {FIRST: [first[1]]}
    lake.shop.catalog.drop_table(TABLE)

    (told,) = lake.pipeline().restore_ledger().taken_back
    again = lake.pipeline()
    report = again.erase(None, Run("erase", "cli"), said, local)
    publish(lake.pipeline())

    assert (told.partition, told.revision) == (day(1), 2)
    assert report.left == ()
    assert lake.rows() == {FIRST: [first[1]]}
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ledger_that_is_lost_is_made_of_the_work_directory_and_the_table(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    first = published(lake, {1: 3, 2: 1})
    late = lake.commit({1: 2, 3: 1})
    load(lake.pipeline())
    with monkeypatch.context() as dying:
        fail_once(dying, moment, Killed)
        with pytest.raises(Killed):
            lake.pipeline().publish(day(1), "cli", NOW)
    for path in lake.root.glob("ledger.db*"):
        path.unlink()

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.rows()[FIRST] == [*first[:3], *late[:2]]
    assert list(lake.pipeline().findings()) == []
    assert len([it for it in lake.history() if it["tidegate.revision"] == "2"]) == 1


def test_restored_ledger_is_refused_until_it_knows_what_is_published(lake: LakeToLake) -> None:
    first = lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    with lake.as_before():
        copied = lake.root.parent / f"{lake.root.name}-copied"
        publish(lake.pipeline())
        for path in lake.root.glob("ledger.db*"):
            path.unlink()
        for path in copied.glob("ledger.db*"):
            shutil.copy(path, lake.root / path.name)
    with pytest.raises(LedgerBehind):
        lake.pipeline().publish(day(1), "cli", NOW)

    lake.pipeline().restore_ledger()
    publish(lake.pipeline())

    assert lake.rows() == {FIRST: first[:3]}
    assert len(lake.history()) == 1


def test_held_branch_survives_a_death_before_the_verdict(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = lake.commit({1: 12, 2: 1})
    load(lake.pipeline(**HOLDING))
    with monkeypatch.context() as dying:
        real, left = SqlCatalog.commit_table, [1, 1]

        def commit_table(catalog: SqlCatalog, *args: Any) -> Any:
            made = real(catalog, *args)
            left.pop()
            if not left:
                raise Killed
            return made

        dying.setattr(SqlCatalog, "commit_table", commit_table)
        with pytest.raises(Killed):
            lake.pipeline(**HOLDING).publish(day(1), "cli", NOW)

    lake.pipeline(**HOLDING).publish(day(1), "cli", NOW, by_command=True)
    assert lake.rows(held_branch(day(1))) == {FIRST: ids[:12]}
    decide(lake.pipeline(**HOLDING), day(1))
    publish(lake.pipeline(**HOLDING))

    assert lake.rows()[FIRST] == ids[:12]
    assert held_branch(day(1)) not in lake.shop.metadata.refs
