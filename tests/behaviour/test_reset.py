"""A pipeline begins again: on top of what stands, or from nothing; window numbers go on."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dying import Killed, deaths, each_death
from small_lake import NOW, SmallLake, day, load, publish, stand_as_before
from tidegate.cli import output
from tidegate.cli.app import app
from tidegate.errors import PartitionBusy, ResetUnfinished, TidegateError
from tidegate.model.run import Run
from tidegate.pipeline.state.holders import process_owner
from tidegate.stage import layout
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tidegate.pipeline import Pipeline

FIRST, SECOND, THIRD = (f"dt=2026-02-0{number}" for number in (1, 2, 3))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    made = SmallLake(tmp_path / "lake")
    made.file()
    made.found_by_name(monkeypatch)
    return made


def tidegate(*arguments: str, answers: str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=answers, catch_exceptions=False)


def sequences(lake: SmallLake) -> list[int]:
    return [item.window.sequence for item in lake.pipeline().ledger.windows.all()]


def refusal_of(*arguments: str) -> dict[str, Any]:
    found = tidegate(*arguments, "--json")
    assert found.exit_code != 0
    return json.loads(found.stdout)["error"]


def follow(message: str, beginning: str) -> Result:
    """Type the command that a message names."""
    commands = [part for part in message.split("`")[1::2] if part.startswith(beginning)]
    assert len(commands) == 1
    return tidegate(*shlex.split(commands[0])[1:], "--yes")


def test_source_is_read_again_and_replaces_what_stands(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    ids += lake.commit({1: 1})
    tidegate("load", "orders")
    before = lake.stamps()

    changed = lake.file(source={"read": {"filter": "id != 1"}})
    read = tidegate("reset", "orders", "--yes")
    untouched = lake.stamps()
    tidegate("publish", "orders")

    assert changed.exists()
    assert read.exit_code == 0
    assert untouched == before
    assert sequences(lake) == [1, 2, 3]
    assert lake.ids() == {FIRST: [*ids[1:3], ids[5]], SECOND: [ids[3]]}
    assert (
        lake.pipeline(source={"read": {"filter": "id != 1"}})
        .explain(day(1), NOW)
        .report.state.revision
        == 2
    )


def test_partition_without_rows_in_the_source_becomes_empty(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    lake.file(source={"read": {"filter": "id > 3"}})

    tidegate("reset", "orders", "--yes")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: [], SECOND: [4]}


@pytest.mark.parametrize("start", ["full", "earliest", "latest"])
def test_pipeline_begins_again_where_its_file_says(lake: SmallLake, start: str) -> None:
    ids = lake.commit({1: 2, 9: 1})
    ids += lake.commit({1: 1, 2: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    lake.file(source={"start": start})

    tidegate("reset", "orders", "--yes")
    tidegate("publish", "orders")
    more = lake.commit({2: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: [*ids[:2], ids[3]], SECOND: [ids[4], *more]}
    assert tidegate("fsck", "orders").exit_code == 0


def test_reset_that_was_killed_goes_on_with_its_window(lake: SmallLake) -> None:
    ids = lake.commit({1: 2, 9: 1})
    tidegate("load", "orders")
    died = process_owner("cli").replace(f":{os.getpid()}:", ":4194999:")
    lake.pipeline().reset(Run("died", died), NOW)
    ids += lake.commit({1: 1})

    tidegate("reset", "orders", "--yes")
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert sequences(lake) == [1, 2, 3]
    assert lake.ids() == {FIRST: [*ids[:2], ids[3]]}


def test_everything_is_dropped_but_what_tidegate_did_not_write(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    note = lake.target / FIRST / "_note.txt"
    note.write_text("ours")

    dropped = tidegate("reset", "orders", "--drop-target", "--yes", "--json")
    left = sorted(path.name for path in lake.target.rglob("*") if path.is_file())
    after = {"exit": tidegate("status", "orders").exit_code, "windows": sequences(lake)}
    tidegate("load", "orders")
    tidegate("publish", "orders")

    told = json.loads(dropped.stdout)["dropped"]
    assert (told["partitions"], told["rows"], told["files"], told["pending"]) == (2, 4, 4, 1)
    assert left == [".tidegate.owner", "_note.txt"]
    assert after["windows"] == []
    assert sequences(lake) == [2]
    assert lake.ids() == {FIRST: ids[:3], SECOND: [ids[3]]}
    assert tidegate("fsck", "orders").exit_code == 0


@pytest.mark.follows("AnnounceOutdated")
@pytest.mark.parametrize("loaded", [False, True], ids=["at once", "after a load"])
def test_copy_of_before_a_drop_that_was_put_back_is_dropped_again(
    lake: SmallLake, *, loaded: bool
) -> None:
    ids = lake.commit({1: 3, 2: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    places = (lake.target, lake.work)
    for place in places:
        shutil.copytree(place, lake.root / "copy" / place.name)
    tidegate("reset", "orders", "--drop-target", "--yes")
    for place in places:
        stand_as_before(place, lake.root / "copy" / place.name)
    ids += lake.commit({1: 1})
    if loaded:
        tidegate("load", "orders")
        assert "fsck orders --rebuild" in tidegate("publish", "orders").output
    refused = refusal_of("fsck", "orders", "--rebuild")
    assert refused["code"] == "AnnounceOutdated"

    follow(refused["message"], "tidegate reset")
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: [*ids[:3], ids[5]], SECOND: [ids[3]]}
    assert tidegate("fsck", "orders").exit_code == 0


@pytest.mark.on_disk
@pytest.mark.parametrize("killed", [False, True], ids=["", "killed before"])
def test_folders_are_removed_in_which_only_its_files_were(lake: SmallLake, *, killed: bool) -> None:
    by_hour = {"target": {"partition_by": {"dt": "day(at)", "hr": "hour(at)"}}}
    pipeline = lake.pipeline(**by_hour)
    lake.commit({1: 1, 2: 1, 3: 1, 9: 1})
    load(pipeline)
    publish(pipeline)
    (lake.target / FIRST / "_note.txt").write_text("ours")
    (lake.target / SECOND / "archive").mkdir()
    (lake.target / "empty").mkdir()
    assert (lake.target / FIRST / "hr=00").exists()
    if killed:
        for day in (FIRST, SECOND, THIRD):
            for file in (lake.target / day / "hr=00").iterdir():
                file.unlink()

    pipeline.drop("cli", NOW)

    left = sorted(str(path.relative_to(lake.target)) for path in lake.target.rglob("*"))
    expected = [FIRST, f"{FIRST}/_note.txt", SECOND, f"{SECOND}/archive", "empty"]
    assert left == [".tidegate.owner", *expected]


def test_it_is_asked_with_numbers(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.commit({1: 3, 2: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    before = lake.stamps()
    monkeypatch.setattr(output, "at_terminal", lambda: True)

    kept = tidegate("reset", "orders", answers="n\n")
    dropped = tidegate("reset", "orders", "--drop-target", answers="n\n")

    assert (kept.exit_code, dropped.exit_code) == (3, 3)
    assert "2 partitions with 4 rows (4 files" in kept.stdout
    assert "`source.start: full`" in kept.stdout
    assert "This deletes 2 partitions with 4 rows (4 files" in dropped.stdout
    assert "1 partition has rows that are not published" in dropped.stdout
    assert lake.stamps() == before
    assert sequences(lake) == [1]


def test_target_that_is_overwritten_has_all_rows_after_one_load_and_the_last_after_steps(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.keys = {"target": {"write": "overwrite"}, "commit": {"trigger": "process-time"}}
    lake.file()
    ids = lake.commit({1: 2, 2: 1})
    tidegate("load", "orders")
    ids += lake.commit({2: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    assert lake.ids() == {FIRST: ids[:2], SECOND: ids[3:]}
    monkeypatch.setattr(output, "at_terminal", lambda: True)
    told = "a partition then has all of its rows"

    asked = tidegate("reset", "orders", answers="n\n")
    dropping = tidegate("reset", "orders", "--drop-target", answers="n\n")
    dropped = tidegate("reset", "orders", "--drop-target", "--yes")

    for said in (asked, dropping, dropped):
        assert told in " ".join(said.stdout.split())
    tidegate("load", "orders")
    tidegate("publish", "orders")
    assert lake.ids() == {FIRST: ids[:2], SECOND: ids[2:]}

    # The way out that is told.
    tidegate("reset", "orders", "--drop-target", "--yes")
    assert tidegate("load", "orders", "--until", "2026-02-02").exit_code == 0
    assert tidegate("load", "orders").exit_code == 0
    tidegate("publish", "orders")
    assert lake.ids() == {FIRST: ids[:2], SECOND: ids[3:]}


def test_scripts_have_to_say_yes(lake: SmallLake) -> None:
    lake.commit({1: 1})
    tidegate("load", "orders")

    asked = tidegate("reset", "orders", "--drop-target")

    assert asked.exit_code == 2
    assert "--yes" in asked.stderr
    assert sequences(lake) == [1]


def test_nothing_is_reset_before_the_first_load(lake: SmallLake) -> None:
    lake.commit({1: 1})

    assert tidegate("reset", "orders", "--yes").exit_code == 3
    assert tidegate("reset", "orders", "--drop-target", "--yes").exit_code == 3


def test_run_that_is_alive_is_left_to_end(lake: SmallLake) -> None:
    lake.commit({1: 1})
    pipeline = lake.pipeline()
    pipeline.plan(Run("alive", "airflow:orders_load/scheduled"), NOW)

    refused = refusal_of("reset", "orders", "--drop-target", "--yes")

    assert refused["code"] == "WindowOpen"
    assert not (lake.work / "reset.json").exists()
    assert sequences(lake) == [1]


@pytest.mark.on_disk
def test_process_that_moves_files_is_left_to_end(lake: SmallLake) -> None:
    lake.commit({1: 2, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    before = lake.stamps()
    pipeline = lake.pipeline()

    lock = layout.lock_file(pipeline.roots.work, day(1))
    with LocalStorage().lock(lock, "the other"), pytest.raises(PartitionBusy, match="the other"):
        pipeline.drop("cli", NOW)

    assert lake.stamps() == before
    assert not (lake.work / "reset.json").exists()
    pipeline.drop("cli", NOW)
    assert lake.stamps() != before
    assert lake.ids() == {}


def test_load_that_was_alive_all_the_same_announces_nothing(lake: SmallLake) -> None:
    ids = lake.commit({1: 2, 9: 1})
    pipeline = lake.pipeline()
    died = process_owner("cli").replace(f":{os.getpid()}:", ":4194999:")
    planned = pipeline.plan(Run("zombie", died), NOW)

    tidegate("reset", "orders", "--drop-target", "--yes")
    with pytest.raises(TidegateError):
        pipeline.announce(planned, NOW)
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: ids[:2]}


@pytest.mark.follows("PipelineChanged")
@pytest.mark.parametrize(
    "changed",
    [
        {"timezone": "Europe/Berlin"},
        {"target": {"partition_by": {"dt": "month(at)"}}},
        {"source": {"table": "raw.others"}},
        {"target": {"path": "@elsewhere"}},
    ],
    ids=["timezone", "partitioning", "source", "target"],
)
def test_changed_pipeline_begins_again_as_its_file_says(
    lake: SmallLake, changed: dict[str, Any]
) -> None:
    lake.catalog.create_table("raw.others", lake.table.schema())
    lake.commit({1: 2, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    elsewhere = lake.target.parent / "elsewhere"
    lake.file(**json.loads(json.dumps(changed).replace("@elsewhere", str(elsewhere))))

    message = refusal_of("load", "orders")["message"]
    assert follow(message, "tidegate reset").exit_code == 0
    loaded = tidegate("load", "orders")

    assert loaded.exit_code in {0, 3}
    assert tidegate("fsck", "orders").exit_code == 0
    assert list(lake.target.rglob("*.parquet")) == []
    if "path" in changed.get("target", {}):
        assert not (lake.target / ".tidegate.owner").exists()
        assert (elsewhere / ".tidegate.owner").exists()


@pytest.mark.follows("TableIdentityChanged")
def test_table_that_was_made_again_is_read_from_its_beginning(lake: SmallLake) -> None:
    lake.commit({1: 2, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    lake.catalog.drop_table("raw.orders")
    lake.table = lake.catalog.create_table("raw.orders", lake.table.schema())
    ids = lake.commit({1: 1, 2: 1, 9: 1})

    message = refusal_of("load", "orders")["message"]
    follow(message.replace("PIPELINE", "orders"), "tidegate reset")
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: [ids[0]], SECOND: [ids[1]]}


@pytest.mark.follows("WorkGone", "TargetGone")
@pytest.mark.parametrize("lost", ["target", "work", "both"])
def test_directories_that_were_deleted_by_hand_are_made_again(lake: SmallLake, lost: str) -> None:
    ids = lake.commit({1: 3, 2: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    for path in {"target": [lake.target], "work": [lake.work]}.get(lost, [lake.target, lake.work]):
        shutil.rmtree(path)

    message = refusal_of("load", "orders")["message"]
    assert follow(message, "tidegate reset").exit_code == 0
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: ids[:3], SECOND: [ids[3]]}
    assert tidegate("fsck", "orders").exit_code == 0


@pytest.mark.on_disk
@pytest.mark.follows("WorkGone")
def test_target_whose_work_and_ledger_are_lost_is_removed_by_hand(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    shutil.rmtree(lake.work)
    (lake.root / "ledger.db").unlink()

    message = refusal_of("fsck", "orders", "--rebuild")["message"]
    assert f"remove {lake.target} and {lake.work}" in message
    assert refusal_of("reset", "orders", "--drop-target", "--yes")["code"] == "LedgerLost"
    shutil.rmtree(lake.target)
    tidegate("load", "orders")
    tidegate("publish", "orders")

    assert lake.ids() == {FIRST: ids[:3]}


@pytest.mark.on_disk
@each_death
@pytest.mark.follows("ResetUnfinished")
def test_reset_killed_at_any_step_is_finished_and_nothing_else_goes_on(
    tmp_path: Path, every: int
) -> None:
    lake = SmallLake(tmp_path / "lake")
    ids = lake.commit({1: 3, 2: 1, 9: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    refusals = []
    for storage in deaths(lake, tmp_path / "before", every):
        with contextlib.suppress(Killed):
            lake.pipeline(storage).drop("cli", NOW)

        refusals.append(refusal_to_load(lake.pipeline()))
        assert (refusals[-1] is not None) == (lake.work / "reset.json").exists()
        if refusals[-1] is not None:
            with pytest.raises(ResetUnfinished):
                lake.pipeline().restore_ledger()
            assert f"`tidegate reset {pipeline.config.name} --drop-target`" in refusals[-1]
            lake.pipeline().drop("cli", NOW)
        again = lake.pipeline()
        load(again)
        publish(again)
        assert lake.ids() == {FIRST: ids[:3], SECOND: [ids[3]]}
        assert list(again.findings()) == []
    assert refusals[0] is None
    assert refusals[-1] is None
    assert None not in refusals[2:-1]


@pytest.mark.on_disk
@each_death
@pytest.mark.follows("ResetUnfinished", "LedgerLost")
def test_reset_killed_at_any_step_is_finished_although_the_ledger_was_lost(
    lake: SmallLake, tmp_path: Path, every: int
) -> None:
    ids = lake.commit({1: 3, 2: 1, 9: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    finished = 0
    for storage in deaths(lake, tmp_path / "before", every):
        with contextlib.suppress(Killed):
            lake.pipeline(storage).drop("cli", NOW)
        if not (lake.work / "reset.json").exists():
            continue
        for path in lake.root.glob("ledger.db*"):
            path.unlink()

        lost = refusal_of("retire", "orders", "--yes")
        assert lost["code"] == "LedgerLost"
        message = refusal_of("fsck", "orders", "--rebuild")["message"]
        assert follow(message, "tidegate reset").exit_code == 0

        assert lake.ids() == {}
        assert not (lake.work / "reset.json").exists()
        assert tidegate("load", "orders").exit_code == 0
        assert tidegate("publish", "orders").exit_code == 0
        assert lake.ids() == {FIRST: ids[:3], SECOND: [ids[3]]}
        assert tidegate("fsck", "orders").exit_code == 0
        finished += 1
    assert finished * every > 3


@pytest.mark.parametrize("written", ["another ledger", "another pipeline"])
def test_reset_of_another_is_not_finished(lake: SmallLake, written: str) -> None:
    lake.commit({1: 1, 9: 1})
    tidegate("load", "orders")
    tidegate("publish", "orders")
    stands = lake.ids()
    known = json.loads((lake.work / "owner.json").read_text())
    begun = {"format": 1, "pipeline": known["pipeline"], "ledger": known["ledger"]}
    begun[written.split()[1]] = "other"
    (lake.work / "reset.json").write_text(json.dumps(begun))
    (lake.root / "ledger.db").unlink()

    refused = refusal_of("reset", "orders", "--drop-target", "--yes")

    assert refused["code"] == "LedgerLost"
    assert lake.ids() == stands


def refusal_to_load(pipeline: Pipeline) -> str | None:
    try:
        pipeline.adopt(NOW)
    except ResetUnfinished as refused:
        return str(refused)
    return None
