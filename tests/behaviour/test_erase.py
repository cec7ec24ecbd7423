"""Erased rows leave all that stands, waits or is kept, and nothing brings them back."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.json as pj
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import StringType
from typer.testing import CliRunner

from behaviour.test_compaction import RULE
from behaviour.test_late_data import check_restored
from behaviour.test_upsert import CHANGES, UPSERT, ChangingLake
from crash.faults import Stopper, stopping_storage
from interrupting import Interrupting, before_look
from small_lake import DAY_1 as DAY_1_AT
from small_lake import (
    NOW,
    SCHEMA,
    SmallLake,
    day,
    decide,
    interval,
    known,
    load,
    local,
    publish,
)
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    ErasedColumnGone,
    ErasedSince,
    ErasureInvalid,
    NothingErased,
    UndoImpossible,
)
from tidegate.model.finding import FindingKind
from tidegate.model.publication import Approval
from tidegate.model.run import Run
from tidegate.read.erased_rows import ErasedRows
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.erasure import ErasureReport
    from tidegate.pipeline import Pipeline

DAY_1 = "dt=2026-02-01"
ADA = Approval(approved=True, by="ada", at=NOW, comment="asked for by letter")
RUN = Run("erase", "cli")


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})


class Died(BaseException):
    """What ends a process here."""


def erase(opened: Pipeline, *ids: int) -> ErasureReport:
    listed = ", ".join(map(str, ids))
    erasure = opened.erasure(f"id in ({listed})", "ada", NOW)
    return opened.erase(erasure, RUN, ADA, local)


def grown(lake: SmallLake, commits: int = 3, **keys: Any) -> Pipeline:
    """Publish a revision of the first day per commit, with two rows more each."""
    for _ in range(commits):
        lake.commit({1: 2})
        load(lake.pipeline(**keys), interval(lake.commits))
        publish(lake.pipeline(**keys))
    return lake.pipeline(**keys)


def everywhere(lake: SmallLake) -> set[int]:
    """Return the ids in all files but the source's, published or not."""
    found: set[int] = set()
    for path in (lake.root / "published").rglob("*"):
        if path.name.endswith(".parquet") and path.is_file():
            found |= set(pq.read_table(path, columns=["id"])["id"].to_pylist())
    return found


def test_rows_leave_the_revision_that_stands_and_all_before(lake: SmallLake) -> None:
    opened = grown(lake)
    assert opened.compact(day(1), RULE, "cli", NOW) is not None

    report = erase(opened, 3)

    assert report.left == ()
    assert report.rows == 1
    assert lake.ids() == lake.listed_ids() == {DAY_1: [1, 2, 4, 5, 6]}
    assert everywhere(lake) == {1, 2, 4, 5, 6}
    assert list(opened.findings()) == []


def test_files_without_such_rows_stay_as_they_are(lake: SmallLake) -> None:
    opened = grown(lake)
    before = lake.stamps()

    erase(opened, 3)

    after = lake.stamps()
    kept = [name for name in before if name.endswith(".parquet") and name in after]
    assert len(kept) == 2
    assert all(after[name] == before[name] for name in kept)


def test_replays_and_rebuilds_and_resets_bring_nothing_back(lake: SmallLake) -> None:
    opened = grown(lake)
    erase(opened, 3, 4)

    opened.finish_load(opened.replay(2, RUN, NOW), NOW, local)
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 2, 5, 6]}
    opened.finish_load(opened.rebuild([day(1)], RUN, NOW), NOW, local)
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 2, 5, 6]}
    opened.drop("cli", NOW)
    announced = load(opened)
    publish(opened)

    assert lake.ids() == {DAY_1: [1, 2, 5, 6]}
    assert everywhere(lake) == {1, 2, 5, 6}
    assert (announced.summary.rows_read, announced.summary.rows_erased) == (4, 2)
    assert list(opened.findings()) == []


def test_replay_that_changes_nothing_else_makes_no_revision(lake: SmallLake) -> None:
    # A file that is copied unchanged has other bytes than one that is read without erased rows.
    opened = grown(lake, target={"copy_whole_files": "never"})
    erase(opened, 3)
    revision = opened.ledger.partitions.get(day(1)).revision

    opened.finish_load(opened.replay(1, RUN, NOW), NOW, local)
    publish(opened)

    assert opened.ledger.partitions.get(day(1)).revision == revision


def test_window_of_which_all_rows_are_erased_stays_known(lake: SmallLake) -> None:
    opened = grown(lake)

    erase(opened, 3, 4)
    lake.commit({1: 1})
    load(opened, interval(4))
    publish(opened)

    assert lake.ids() == {DAY_1: [1, 2, 5, 6, 7]}
    assert list(opened.findings()) == []


def test_undo_to_a_revision_with_erased_rows_is_refused(lake: SmallLake) -> None:
    opened = grown(lake)
    erase(opened, 3)

    with pytest.raises(UndoImpossible):
        opened.undo(day(1), 4, ADA, "cli", NOW)

    assert lake.ids() == {DAY_1: [1, 2, 4, 5, 6]}


def test_rows_that_wait_or_are_held_are_read_again_without_them(lake: SmallLake) -> None:
    lake.keys |= {"rows": [{"name": "few", "where": "id < 3", "on_failure": "hold"}]}
    opened = grown(lake, 2)
    assert opened.ledger.partitions.get(day(1)).pending == "held"
    lake.commit({1: 2, 2: 1})
    load(opened, interval(3))

    report = erase(opened, 3, 5)

    assert report.left == ()
    assert report.rows == 0
    assert everywhere(lake) == {1, 2, 4, 6, 7}
    publish(opened)
    decide(opened, day(1))
    publish(opened)
    assert lake.ids()[DAY_1] == [1, 2, 4, 6]


def test_what_is_published_changes_though_something_waits(lake: SmallLake) -> None:
    opened = grown(lake, 2)
    lake.commit({1: 2})
    load(opened, interval(3))

    report = erase(opened, 3)

    assert report.left == ()
    assert lake.ids() == {DAY_1: [1, 2, 4]}
    assert opened.ledger.partitions.get(day(1)).pending == "pending"
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 2, 4, 5, 6]}


@pytest.mark.on_disk
def test_commit_that_had_begun_is_finished_and_loses_them(lake: SmallLake) -> None:
    grown(lake, 2)
    lake.commit({1: 2})
    load(lake.pipeline(), interval(3))

    def die() -> None:
        raise Died

    storage = LocalStorage(Interrupting(pattern=r"dt=2026-02-01/part-", happens=[die]))
    with pytest.raises(Died):
        lake.pipeline(storage).publish(day(1), "cli", NOW)

    report = erase(lake.pipeline(), 3, 5)

    assert (report.left, report.rows) == ((), 2)
    assert lake.ids() == lake.listed_ids() == {DAY_1: [1, 2, 4, 6]}
    assert everywhere(lake) == {1, 2, 4, 6}


@pytest.mark.on_disk
@pytest.mark.parametrize("policy", ["hold", "reject", "side", "propose"])
def test_late_rows_that_are_set_aside_lose_them_too(lake: SmallLake, policy: str) -> None:
    side = {"side": {"path": str(lake.root / "published" / "late")}}
    lake.keys = {"commit": {"late_data": side if policy == "side" else policy}}
    first = lake.commit({1: 2, 2: 1})
    lake.commit({1: 2, 3: 1})
    opened = lake.pipeline()
    load(opened, interval(1))
    publish(opened)
    load(opened, interval(2))
    opened.publish(day(1), "cli", NOW)

    report = erase(opened, 1, 4)

    assert report.left == ()
    assert everywhere(lake) == {2, 3, 5, 6}
    assert lake.ids()[DAY_1] == [first[1]]
    if policy == "propose":
        opened.publish(day(1), "cli", NOW)
        decide(opened, day(1))
    else:
        opened.reopen(day(1), NOW)
    opened.publish(day(1), "cli", NOW)
    assert lake.ids()[DAY_1] == [2, 5]
    assert list(opened.findings()) == []


@pytest.mark.on_disk
def test_rows_leave_quarantine_and_the_others_stay_there(lake: SmallLake) -> None:
    rule = {"name": "sane", "where": "id > 2", "on_failure": "quarantine"}
    opened = grown(lake, 2, rows=[rule])
    (file,) = lake.work.rglob("quarantine/**/*.parquet")

    report = erase(opened, 1)

    assert [item.path for item in report.files] == [str(file)]
    assert pq.read_table(file)["id"].to_pylist() == [2]
    assert lake.ids() == {DAY_1: [3, 4]}
    assert opened.garbage(NOW.replace(year=2030), NOW - NOW) == ()


def test_rows_that_were_joined_by_key_are_erased(tmp_path: Path) -> None:
    lake = ChangingLake(tmp_path / "lake", keys=UPSERT)
    opened = lake.pipeline(source=CHANGES)
    for rows in ({1: (1, 10), 2: (1, 10), 3: (2, 10)}, {1: (2, 20), 4: (1, 20)}):
        lake.write(rows)
        load(opened)
        publish(opened)

    report = erase(opened, 1, 4)

    assert report.left == ()
    assert lake.ids() == {DAY_1: [2], "dt=2026-02-02": [3]}
    assert everywhere(lake) == {2, 3}
    assert list(opened.findings()) == []
    lake.write({1: (1, 30), 2: (2, 30)})
    load(opened)
    publish(opened)
    assert {it: ids for it, ids in lake.ids().items() if ids} == {"dt=2026-02-02": [2, 3]}
    assert everywhere(lake) == {2, 3}


def test_files_that_do_not_say_their_columns_are_erased_as_planned(lake: SmallLake) -> None:
    lake.keys |= {"target": {"format": "csv"}}
    opened = grown(lake)

    report = erase(opened, 3)

    assert report.left == ()
    read = [
        number
        for path in sorted((lake.target / DAY_1).glob("*.csv"))
        for number in pc_csv.read_csv(path)["id"].to_pylist()
    ]
    assert sorted(read) == [1, 2, 4, 5, 6]
    # Of what is kept, nothing else is there but what waits.
    kept = [path for path in lake.work.rglob("*.csv") if path.is_file()]
    assert not any(3 in pc_csv.read_csv(path)["id"].to_pylist() for path in kept)
    lake.commit({1: 1})
    load(opened, interval(4))
    publish(opened)
    assert list(opened.findings()) == []


def test_erasure_keeps_no_value_and_is_the_same_when_it_is_asked_for_again(
    lake: SmallLake,
) -> None:
    opened = grown(lake)
    erase(opened, 3)
    erase(opened, 4)

    again = opened.erasure("id = 3", "bob", NOW)

    assert again.number == 1
    stored = json.loads((lake.work / "erasures" / "000001.json").read_text())
    assert stored["columns"] == ["id"]
    assert "3" not in {*map(str, stored["rows"][0].values())}
    assert erase(opened, 3).files == ()
    assert len(list(lake.work.glob("erasures/??????.json"))) == 2


@pytest.mark.on_disk
@pytest.mark.follows("ErasedSince")
def test_load_that_was_planned_before_is_refused_and_planned_again(lake: SmallLake) -> None:
    grown(lake, 1)
    lake.commit({1: 2})

    def meanwhile() -> None:
        beside = lake.pipeline()
        erasure = beside.erasure("id = 3", "ada", NOW)
        report = beside.erase(erasure, RUN, ADA, local)
        assert [item.done for item in report.left] != []

    storage = LocalStorage(Interrupting(pattern=r"000002/.*/messages/", happens=[meanwhile]))
    with pytest.raises(ErasedSince):
        load(lake.pipeline(storage), interval(2))

    opened = lake.pipeline()
    load(opened, interval(2))
    assert opened.erase(None, RUN, ADA, local).left == ()
    publish(opened)
    assert lake.ids() == {DAY_1: [1, 2, 4]}
    assert everywhere(lake) == {1, 2, 4}


def test_lost_ledger_is_restored_after_an_erasure(lake: SmallLake) -> None:
    opened = grown(lake)
    erase(opened, 3)

    check_restored(opened)
    assert opened.erase(None, RUN, ADA, local).files == ()


@pytest.mark.on_disk
def test_process_that_dies_anywhere_is_gone_on_from(lake: SmallLake) -> None:
    lake.keys |= {"rows": [{"name": "sane", "where": "id != 2", "on_failure": "quarantine"}]}
    opened = grown(lake, 2)
    opened.compact(day(1), RULE, "cli", NOW)
    lake.commit({1: 2, 2: 1})
    load(opened, interval(3))
    erasure = opened.erasure("id in (1, 2, 3, 5)", "ada", NOW)
    whole = lake.root.with_name("whole")
    shutil.copytree(lake.root, whole)
    step, died = 0, True
    while died:
        step += 17
        shutil.rmtree(lake.root)
        shutil.copytree(whole, lake.root)
        died = dies(lake, erasure, step)
        if died and not list(lake.work.glob("erasures/*.json")):
            continue
        then = lake.pipeline()
        assert then.erase(None, RUN, ADA, local).left == ()
        assert everywhere(lake) == {4, 6, 7}
        assert list(then.findings()) == []
        publish(then)
        assert lake.ids() == {DAY_1: [4, 6], "dt=2026-02-02": [7]}
    assert step > 100


def dies(lake: SmallLake, erasure: Any, step: int) -> bool:
    def dying() -> None:
        raise Died

    opened = lake.pipeline(stopping_storage(Stopper(step, dying=dying)))
    try:
        assert opened.erase(erasure, RUN, ADA, local).left == ()
    except Died:
        return True
    return False


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("id > 3", "names no values"),
        ("id = 3 or id = 4", "names no values"),
        ("ident = 3", "no column 'ident'"),
        ("amount is null", "names no values"),
        ("at = '2026-02-01 00:01:00'", "timestamp"),
        ("id = 'three'", "cannot compare"),
    ],
)
def test_condition_that_names_no_values_is_refused(
    lake: SmallLake, where: str, problem: str
) -> None:
    opened = grown(lake, 1)

    with pytest.raises(ErasureInvalid, match=problem):
        opened.erasure(where, "ada", NOW)

    assert not (lake.work / "erasures").exists()


def test_command_erases_says_where_and_goes_on(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(lake)
    lake.found_by_name(monkeypatch)
    command = CliRunner()

    refused = command.invoke(app, ["erase", "orders", "--where", "id = 3"])
    assert refused.exit_code == 2
    assert "--yes" in refused.output
    both = command.invoke(app, ["erase", "orders"])
    assert both.exit_code == 2
    done = command.invoke(app, ["erase", "orders", "--where", "id = 3", "--yes"])

    assert done.exit_code == 0, done.output
    assert "1 published row erased" in done.output
    again = command.invoke(app, ["erase", "orders", "--again", "--json"])
    assert again.exit_code == 0
    assert json.loads(again.stdout)["files"] == []
    assert lake.ids() == {DAY_1: [1, 2, 4, 5, 6]}


@pytest.mark.follows("NothingErased")
def test_going_on_with_nothing_is_refused(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NothingErased) as refused:
        grown(lake, 1).erase(None, RUN, ADA, local)

    lake.found_by_name(monkeypatch)
    assert "`tidegate erase orders --where CONDITION`" in str(refused.value)
    typed = ["erase", "orders", "--where", "id = 1", "--yes"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    assert lake.ids() == {DAY_1: [2]}


@pytest.mark.on_disk
def test_erasure_that_was_not_finished_is_found_until_it_is(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = grown(lake)

    def die() -> None:
        raise Died

    storage = LocalStorage(Interrupting(pattern=r"erasures/000001\.json", happens=[die]))
    with pytest.raises(Died):
        erase(lake.pipeline(storage), 3)

    (finding,) = opened.inspect()
    assert finding.kind is FindingKind.ERASURE_UNFINISHED
    assert finding.commands == ("tidegate erase orders --again",)
    lake.found_by_name(monkeypatch)
    assert "tidegate erase orders --again" in CliRunner().invoke(app, ["publish", "orders"]).output
    opened.erase(None, RUN, ADA, local)
    assert list(opened.findings()) == []
    assert everywhere(lake) == {1, 2, 4, 5, 6}


@pytest.mark.on_disk
def test_rows_of_which_the_source_is_gone_are_left_and_told(lake: SmallLake) -> None:
    grown(lake, 2)
    lake.commit({1: 2, 2: 1})
    opened = lake.pipeline()
    load(opened, interval(3))
    keep = lake.table.refresh().current_snapshot()
    assert keep is not None
    old = [it.snapshot_id for it in lake.table.snapshots() if it.snapshot_id != keep.snapshot_id]
    lake.table.maintenance.expire_snapshots().by_ids(old[:1]).commit()
    lake.commit({5: 1})
    shutil.rmtree(lake.root / "raw" / "raw" / "orders" / "data")

    report = erase(opened, 3, 5)

    (left,) = report.left
    assert left.rows == 1
    assert "000003" in left.path
    assert lake.ids() == {DAY_1: [1, 2, 4]}
    assert [it.kind for it in opened.inspect()].count(FindingKind.ERASURE_UNFINISHED) == 1
    publish(opened)
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert everywhere(lake) == {1, 2, 4, 6, 7}


def test_erased_column_of_another_width_is_known(lake: SmallLake) -> None:
    opened = grown(lake, 1)
    erasure = opened.erasure("id = 1", "ada", NOW)
    narrow = pa.record_batch({"id": pa.array([0, 1, None], pa.int16())})

    assert ErasedRows([erasure], narrow.schema).left(narrow)["id"].to_pylist() == [0, None]


def emails(lake: SmallLake, column: str, rows: dict[int, str]) -> None:
    """Append rows of the first day with a text, under the column's name of the day."""
    lake.commits += 1
    moment = known(lake.commits - 0.5).isoformat()
    columns = {"id": list(rows), "at": [DAY_1_AT] * len(rows), "amount": [1] * len(rows)}
    schema = pa.schema([*SCHEMA, (column, pa.string())])
    table = pa.table({**columns, column: list(rows.values())}, schema)
    lake.table.append(table, snapshot_properties={"known-at": moment})


def with_emails(lake: SmallLake) -> Pipeline:
    """Publish two people by `email`."""
    with lake.table.update_schema() as change:
        change.add_column("email", StringType())
    emails(lake, "email", {1: "ada@x", 2: "bob@x"})
    opened = lake.pipeline()
    load(opened, interval(1))
    publish(opened)
    return opened


def renamed(lake: SmallLake) -> Pipeline:
    """Publish two people by `email`, erase one, and call the column `mail`."""
    opened = with_emails(lake)
    erasure = opened.erasure("email = 'ada@x'", "ada", NOW)
    assert opened.erase(erasure, RUN, ADA, local).left == ()
    with lake.table.update_schema() as change:
        change.rename_column("email", "mail")
    emails(lake, "mail", {3: "ada@x", 4: "eve@x"})
    return opened


@pytest.mark.follows("ErasedColumnGone")
def test_load_without_the_column_is_refused_until_the_rows_are_named_by_another(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = renamed(lake)

    with pytest.raises(ErasedColumnGone, match="'email'") as refused:
        load(opened, interval(2))

    lake.found_by_name(monkeypatch)
    assert "tidegate erase orders --instead 1 --where CONDITION" in str(refused.value)
    erasure = opened.erasure("email = 'ada@x'", "ada", NOW, instead=[1])
    assert erasure.instead == (1,)
    typed = ["erase", "orders", "--instead", "1", "--yes"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    load(opened, interval(2))
    # The newest window has the new name by now.
    opened.erase(opened.erasure("mail = 'ada@x'", "ada", NOW), RUN, ADA, local)
    publish(opened)
    assert lake.ids() == {DAY_1: [2, 4]}
    assert everywhere(lake) == {2, 4}
    assert list(opened.findings()) == []


def test_column_that_only_earlier_files_have_is_named_and_loads_go_on(lake: SmallLake) -> None:
    opened = with_emails(lake)
    with lake.table.update_schema() as change:
        change.delete_column("email")
    lake.commit({2: 1})
    load(opened, interval(2))
    publish(opened)

    erasure = opened.erasure("email = 'ada@x'", "ada", NOW)
    report = opened.erase(erasure, RUN, ADA, local)

    assert (report.left, report.rows, erasure.since is not None) == ((), 1, True)
    lake.commit({3: 1})
    load(opened, interval(3))
    publish(opened)
    assert lake.ids()[DAY_1] == [2]


def test_files_without_the_column_are_told(lake: SmallLake) -> None:
    opened = grown(lake, 1)
    with lake.table.update_schema() as change:
        change.add_column("email", StringType())
    emails(lake, "email", {9: "ada@x"})
    load(opened, interval(2))
    publish(opened)

    erasure = opened.erasure("email = 'ada@x'", "ada", NOW)

    assert opened.lacking(erasure) == {DAY_1: 1}


@pytest.mark.parametrize(
    "form",
    [{"format": name} for name in ("parquet", "orc", "avro", "csv", "json")]
    + [{"format": "csv", "csv": {"header": False}}, {"format": "json", "compression": "gzip"}],
    ids=str,
)
def test_file_without_rows_that_is_left_is_one_that_readers_open(
    lake: SmallLake, form: dict[str, Any]
) -> None:
    lake.keys |= {"target": form}
    opened = grown(lake)

    assert erase(opened, 3, 4).left == ()

    assert ids_of(lake) == [1, 2, 5, 6]
    assert opened.erase(None, RUN, ADA, local).files == ()
    lake.commit({1: 1})
    load(opened, interval(4))
    publish(opened)
    assert ids_of(lake) == [1, 2, 5, 6, 7]
    assert list(opened.findings()) == []


def ids_of(lake: SmallLake) -> list[int]:
    found: list[int] = read_committed(lake.target).to_table(columns=["id"])["id"].to_pylist()
    return sorted(found)


@pytest.mark.on_disk
@pytest.mark.parametrize("name", ["csv", "json"])
@pytest.mark.parametrize("policy", ["reject", "side"])
def test_late_rows_in_files_of_text_lose_them(lake: SmallLake, policy: str, name: str) -> None:
    late = lake.root / "published" / "late"
    late_data = {"side": {"path": str(late)}} if policy == "side" else policy
    lake.keys = {"commit": {"late_data": late_data}, "target": {"format": name}}
    lake.commit({1: 2, 2: 1})
    lake.commit({1: 2, 3: 1})
    opened = lake.pipeline()
    for number in (1, 2):
        load(opened, interval(number))
        publish(opened)

    assert erase(opened, 4).left == ()

    aside = [*late.rglob("part-*"), *lake.work.rglob("quarantine/late/**/part-*")]
    (left,) = [path for path in aside if path.is_file()]
    rows = pj.read_json(left) if name == "json" else pc_csv.read_csv(left)
    assert rows["id"].to_pylist() == [5]
    assert list(opened.findings()) == []


@pytest.mark.on_disk
def test_former_root_of_late_rows_is_looked_through(lake: SmallLake) -> None:
    side = {"side": {"path": str(lake.root / "published" / "late")}}
    lake.keys = {"commit": {"late_data": side}}
    lake.commit({1: 2, 2: 1})
    lake.commit({1: 2, 3: 1})
    opened = lake.pipeline()
    for number in (1, 2):
        load(opened, interval(number))
        publish(opened)
    lake.keys = {"commit": {"late_data": {"side": {"path": str(lake.root / "published" / "new")}}}}

    assert erase(lake.pipeline(), 4).left == ()

    assert 4 not in everywhere(lake)


@pytest.mark.on_disk
def test_damaged_quarantine_is_told_until_it_is_deleted(lake: SmallLake) -> None:
    rule = {"name": "sane", "where": "id > 2", "on_failure": "quarantine"}
    opened = grown(lake, 2, rows=[rule])
    (file,) = lake.work.rglob("quarantine/**/*.parquet")
    file.write_bytes(file.read_bytes()[:50])

    (left,) = erase(opened, 3).left

    assert left.path == str(file)
    assert "Delete it" in left.done
    file.unlink()
    assert opened.erase(None, RUN, ADA, local).left == ()


def test_damaged_file_leaves_its_partition_and_no_other(lake: SmallLake) -> None:
    lake.commit({1: 2, 2: 2})
    opened = lake.pipeline()
    load(opened, interval(1))
    publish(opened)
    (file,) = (lake.target / DAY_1).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:50])

    found = opened.to_erase(opened.erasure("id in (1, 3)", "ada", NOW))
    assert [len(found.files), [it.partition for it in found.unread]] == [1, [DAY_1]]
    (left,) = erase(opened, 1, 3).left

    assert left.partition == DAY_1
    ids = pq.read_table(next((lake.target / "dt=2026-02-02").glob("*.parquet")))["id"]
    assert ids.to_pylist() == [4]


@pytest.mark.parametrize("condition", ["amount = 77", "id = 1 and amount = 77"])
@pytest.mark.parametrize("first", ["loaded", "erased"])
def test_row_that_an_erased_one_replaced_does_not_come_back(
    tmp_path: Path, first: str, condition: str
) -> None:
    upserts: dict[str, Any] = {
        "commit": {"trigger": "process-time"},
        "target": {"write": "upsert", "keys": ["id"], "keys_stay": True},
        "source": {"read": {"mode": "append"}},
    }
    lake = SmallLake(tmp_path / "lake", keys=upserts)

    def append(rows: dict[int, int]) -> None:
        lake.commits += 1
        table = pa.table(
            {"id": list(rows), "at": [DAY_1_AT] * len(rows), "amount": list(rows.values())}, SCHEMA
        )
        moment = known(lake.commits - 0.5).isoformat()
        lake.table.append(table, snapshot_properties={"known-at": moment})

    opened = lake.pipeline()
    append({1: 10, 2: 20})
    load(opened, interval(1))
    publish(opened)
    append({1: 77, 3: 30})
    if first == "loaded":
        load(opened, interval(2))
        publish(opened)
    opened.erase(opened.erasure(condition, "ada", NOW), RUN, ADA, local)
    if first == "erased":
        load(opened, interval(2))
        publish(opened)
    assert lake.ids() == {DAY_1: [2, 3]}

    opened.finish_load(opened.reset(RUN, NOW), NOW, local)
    publish(opened)

    assert lake.ids() == {DAY_1: [2, 3]}
    (file,) = (lake.target / DAY_1).glob("*.parquet")
    assert set(pq.read_table(file).column_names) == {"id", "at", "amount"}


def test_rows_that_erased_ones_overwrote_do_not_come_back(lake: SmallLake) -> None:
    lake.keys |= {"target": {"write": "overwrite"}}
    lake.commit({1: 2, 2: 1})
    lake.commit({1: 2})
    opened = lake.pipeline()
    for number in (1, 2):
        load(opened, interval(number))
        publish(opened)
    assert lake.ids()[DAY_1] == [4, 5]

    assert erase(opened, 4, 5).left == ()
    opened.finish_load(opened.replay(2, RUN, NOW), NOW, local)
    publish(opened)

    assert lake.ids().get(DAY_1, []) == []
    lake.commit({2: 1})
    erasure = opened.erasure("id = 6", "ada", NOW)
    opened.erase(erasure, RUN, ADA, local)
    load(opened, interval(3))
    publish(opened)
    assert {name: ids for name, ids in lake.ids().items() if ids} == {}
    assert list(opened.findings()) == []


def test_row_of_one_window_is_erased_after_another_was_read_again(lake: SmallLake) -> None:
    opened = grown(lake, 2)
    changed = lake.pipeline(target={"rolling": {"file_size": "64MiB"}})
    changed.finish_load(changed.replay(2, RUN, NOW), NOW, local)
    publish(changed)
    assert opened.ledger.partitions.get(day(1)).pending == "none"

    assert erase(changed, 1).left == ()

    assert lake.ids() == {DAY_1: [2, 3, 4]}


def test_what_is_published_does_not_wait_for_what_was_read_again(lake: SmallLake) -> None:
    grown(lake, 2)
    rule = {"name": "few", "where": "id < 3", "on_failure": "hold"}
    changed = lake.pipeline(rows=[rule])
    changed.finish_load(changed.replay(2, RUN, NOW), NOW, local)
    changed.publish(day(1), "cli", NOW)
    assert changed.ledger.partitions.get(day(1)).pending == "held"

    report = erase(changed, 1, 3)

    assert report.left == ()
    assert lake.ids() == {DAY_1: [2, 4]}
    assert everywhere(lake) == {2, 4}
    publish(changed)
    assert lake.ids() == {DAY_1: [2, 4]}


def test_erasure_of_joined_files_whose_partition_another_run_holds_goes_on(
    lake: SmallLake,
) -> None:
    """What joined files are taken apart to is kept, although it has erased rows."""
    opened = grown(lake)
    opened.compact(day(1), RULE, "cli", NOW)
    claim = opened.ledger.partitions.claim(day(1), opened._holder("another", NOW))

    assert [item.partition for item in erase(opened, 3).left] == [DAY_1]

    opened.ledger.partitions.release(day(1), claim)
    assert opened.erase(None, RUN, ADA, local).left == ()
    assert lake.ids() == {DAY_1: [1, 2, 4, 5, 6]}


def test_two_erasures_at_once_have_two_numbers(lake: SmallLake) -> None:
    opened = grown(lake)
    first, second = (opened.erasure(f"id = {number}", "ada", NOW) for number in (1, 3))
    assert first.number == second.number == 1

    opened.erase(first, RUN, ADA, local)
    opened.erase(second, RUN, ADA, local)

    assert lake.ids() == {DAY_1: [2, 4, 5, 6]}
    stored = [json.loads(path.read_text()) for path in lake.work.glob("erasures/??????.json")]
    assert sorted(item["number"] for item in stored) == [1, 2]


def test_dry_run_shows_what_would_go_and_writes_nothing(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(lake)
    lake.found_by_name(monkeypatch)

    shown = CliRunner().invoke(app, ["erase", "orders", "--where", "id = 3", "--dry-run"])
    nothing = CliRunner().invoke(app, ["erase", "orders", "--where", "id = 99", "--dry-run"])
    wrong = CliRunner().invoke(app, ["erase", "orders", "--where", "id > 3", "--dry-run"])

    assert (shown.exit_code, nothing.exit_code, wrong.exit_code) == (0, 3, 2)
    assert "1 published row of dt=2026-02-01" in shown.output
    assert not (lake.work / "erasures").exists()
    assert lake.ids() == {DAY_1: [1, 2, 3, 4, 5, 6]}


def test_condition_before_anything_was_loaded_is_refused(lake: SmallLake) -> None:
    with pytest.raises(ErasureInvalid, match="nothing was loaded yet"):
        lake.pipeline().erasure("id = 3", "ada", NOW)


@pytest.mark.on_disk
def test_damaged_staged_file_is_told_and_stays(lake: SmallLake) -> None:
    grown(lake, 1)
    lake.commit({1: 2, 2: 1})
    opened = lake.pipeline()
    load(opened, interval(2))
    (file,) = lake.work.glob(f"windows/000002/*/staged/*/*/{DAY_1}/*.parquet")
    file.write_bytes(file.read_bytes()[:50])

    (left,) = erase(opened, 1).left

    assert "000002" in left.path
    assert file.exists()
    assert lake.ids() == {DAY_1: [2]}
    opened.finish_load(opened.replay(2, RUN, NOW), NOW, local)
    assert opened.erase(None, RUN, ADA, local).left == ()
    publish(opened)
    assert lake.ids()[DAY_1] == [2, 3, 4]


def test_dry_run_names_files_that_cannot_be_looked_through(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(lake, 1)
    lake.found_by_name(monkeypatch)
    (file,) = (lake.target / DAY_1).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:50])

    shown = CliRunner().invoke(app, ["erase", "orders", "--where", "id = 1", "--dry-run"])

    assert shown.exit_code == 1
    assert "Not looked through" in shown.output
    assert file.name in shown.output


@pytest.mark.follows("ApprovedFirst")
def test_revision_that_was_approved_goes_before_an_erasure_that_it_does_not_touch(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.keys |= {"rows": [{"name": "few", "where": "id < 3", "on_failure": "hold"}]}
    opened = grown(lake, 2)
    decide(opened, day(1))
    lake.found_by_name(monkeypatch)
    command = CliRunner()

    left = command.invoke(app, ["erase", "orders", "--where", "id = 1", "--yes"])

    assert left.exit_code == 1
    assert "tidegate publish orders dt=2026-02-01`, then the same" in " ".join(left.output.split())
    assert lake.ids() == {DAY_1: [1, 2]}
    assert command.invoke(app, ["publish", "orders", DAY_1]).exit_code == 0
    assert command.invoke(app, ["erase", "orders", "--again"]).exit_code == 0
    assert lake.ids() == {DAY_1: [2, 3, 4]}
    assert everywhere(lake) == {2, 3, 4}


def test_rows_that_are_announced_before_any_look_of_an_erasure_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0
    acted = True
    while acted:
        number += 1
        lake = SmallLake(tmp_path / str(number), keys={"commit": {"trigger": "process-time"}})
        opened = lake.pipeline()
        for window in (1, 2):
            lake.commit({1: 2})
            load(opened, interval(window))
            publish(opened)
        lake.commit({1: 2})
        with before_look(
            monkeypatch, opened, number, partial(load, opened, interval(3))
        ) as happened:
            opened.erase(opened.erasure("id = 1", "ada", NOW), RUN, ADA, local)
        acted = bool(happened)
        if not acted:
            load(opened, interval(3))
        publish(opened)

        assert lake.ids()[DAY_1] == [2, 3, 4, 5, 6], number
    assert number > 3
