"""A pipeline was retired, and the ledger is lost or older than that: its successor goes on."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import tidegate as library
from dying import Killed, deaths, each_death
from small_lake import NOW, SmallLake, day, load, publish
from tidegate.cli.app import app
from tidegate.errors import PipelineRetired, TargetOwned, TargetRegistered

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tidegate.pipeline import Pipeline

FIRST, SECOND, THIRD = (f"dt=2026-02-0{number}" for number in (1, 2, 3))
BEFORE = "ledger.before"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """A lake with two published days, another pipeline in the ledger, and a copy of the ledger."""
    made = SmallLake(tmp_path / "lake", keys={"commit": {"trigger": "process-time"}})
    made.found_by_name(monkeypatch)
    made.commit({1: 3, 2: 1})
    for pipeline in (beside(made), made.pipeline()):
        load(pipeline)
        publish(pipeline)
    shutil.copy(made.root / "ledger.db", made.root / BEFORE)
    return made


def beside(lake: SmallLake) -> Pipeline:
    """Open the other pipeline, which the restored ledger must not lose."""
    path = str(lake.root / "published" / "beside")
    partitioned: dict[str, Any] = {"path": path, "partition_by": {"dt": "day(at)"}}
    return lake.pipeline(None, name="beside", target=partitioned)


def tidegate(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def refusal_of(*arguments: str) -> dict[str, Any]:
    done = tidegate(*arguments, "--json")
    assert done.exit_code == 1, done.output
    told: dict[str, Any] = json.loads(done.stdout)["error"]
    return told


def typed(message: str) -> None:
    """Type the commands of a message."""
    for line in re.findall(r"`tidegate ([^`]+)`", message):
        done = tidegate(*shlex.split(line))
        assert done.exit_code == 0, done.output


def retire(lake: SmallLake, away: str = "old") -> None:
    """Retire the pipeline, take away what it published, and let a successor be found."""
    assert tidegate("retire", "orders", "--yes").exit_code == 0
    (lake.root / away).mkdir()
    for folder in lake.target.glob("dt=*"):
        folder.rename(lake.root / away / folder.name)
    lake.file("next", name="next")


def restore(lake: SmallLake) -> None:
    """Put the ledger back as it was before the retirement."""
    for file in lake.root.glob("ledger.db*"):
        file.unlink()
    shutil.copy(lake.root / BEFORE, lake.root / "ledger.db")


def ids(lake: SmallLake) -> list[int]:
    return sorted(library.read_committed(str(lake.target)).to_table()["id"].to_pylist())


def known(lake: SmallLake) -> dict[str, str]:
    """Give the pipelines of the ledger with their targets."""
    pipelines = lake.pipeline().ledger.pipeline
    found = {item.name: item.target for item in pipelines.others()}
    own = pipelines.find()
    return found | ({own.name: own.target} if own else {})


def assert_goes_on(lake: SmallLake, name: str = "next") -> None:
    """The successor loads and publishes, and the ledger has nothing of its predecessor."""
    assert tidegate("fsck", name).exit_code == 0
    more = lake.commit({1: 1})
    assert tidegate("load", name).exit_code == 0
    assert tidegate("publish", name).exit_code == 0
    assert set(more) <= set(ids(lake))
    assert tidegate("fsck", name).exit_code == 0
    other = beside(lake)
    assert list(other.findings()) == []
    assert load(other).windows == (2,)


@pytest.mark.follows("LedgerLost")
def test_successor_is_restored_into_a_ledger_that_still_has_its_predecessor(
    lake: SmallLake,
) -> None:
    retire(lake)
    assert tidegate("load", "next").exit_code == 0
    assert tidegate("publish", "next").exit_code == 0
    restore(lake)
    rows = set(known(lake))

    refused = refusal_of("load", "next")

    assert (rows, refused["code"]) == ({"orders", "beside"}, "LedgerLost")
    typed(refused["message"])
    assert set(known(lake)) == {"beside", "next"}
    assert ids(lake) == [1, 2, 3, 4]
    assert_goes_on(lake)


def test_successor_that_loaded_nothing_yet_loads_into_such_a_ledger(lake: SmallLake) -> None:
    retire(lake)
    restore(lake)

    assert tidegate("fsck", "next").exit_code == 0
    assert tidegate("check", "next").exit_code == 0
    assert tidegate("load", "next").exit_code == 0
    assert tidegate("publish", "next").exit_code == 0

    assert set(known(lake)) == {"beside", "next"}
    assert ids(lake) == [1, 2, 3, 4]
    assert_goes_on(lake)


def test_chain_of_retired_pipelines_is_forgotten_at_once(lake: SmallLake) -> None:
    retire(lake)
    assert tidegate("load", "next").exit_code == 0
    assert tidegate("publish", "next").exit_code == 0
    assert tidegate("retire", "next", "--yes").exit_code == 0
    for folder in lake.target.glob("dt=*"):
        folder.rename(lake.root / f"older-{folder.name}")
    lake.file("last", name="last")
    assert tidegate("load", "last").exit_code == 0
    restore(lake)

    assert tidegate("fsck", "last", "--rebuild").exit_code == 0

    assert set(known(lake)) == {"beside", "last"}
    assert tidegate("publish", "last").exit_code == 0
    assert ids(lake) == [1, 2, 3, 4]
    assert_goes_on(lake, "last")


@pytest.mark.follows("PipelineRetired")
@pytest.mark.parametrize("asked", ["load", "reset", "reset --drop-target", "retire"])
def test_file_of_the_predecessor_that_comes_back_is_told_that_it_ended(
    lake: SmallLake, asked: str
) -> None:
    retire(lake)
    assert tidegate("load", "next").exit_code == 0
    assert tidegate("publish", "next").exit_code == 0
    restore(lake)
    (lake.root / "orders.yaml.retired").rename(lake.root / "orders.yaml")
    before = lake.stamps()

    verb, *options = asked.split()
    if verb != "retire":
        yes = ["--yes"] if verb == "reset" else []
        refused = refusal_of(verb, "orders", *options, *yes)
        assert refused["code"] == "PipelineRetired"
        assert "`tidegate retire orders` finishes it" in refused["message"]

    # What the message says to do.
    assert tidegate("retire", "orders", "--yes").exit_code == 0
    assert (lake.root / "orders.yaml.retired").exists()
    assert set(known(lake)) == {"beside"}
    changed = {name for name, stamp in lake.stamps().items() if before.get(name) != stamp}
    assert not changed
    assert tidegate("fsck", "next", "--rebuild").exit_code == 0
    assert_goes_on(lake)


@pytest.mark.follows("TargetRegistered")
def test_target_that_its_first_pipeline_moved_away_is_restored_after_that_one(
    lake: SmallLake,
) -> None:
    moved = lake.root / "published" / "moved"
    moved.mkdir()
    lake.target.rename(moved / "orders")
    lake.work.rename(moved / lake.work.name)
    lake.commit({3: 1})
    place = {"target": {"path": str(moved / "orders")}}
    (lake.root / "orders.yaml").unlink()
    lake.file("orders", **place)
    for name in ("orders", "next"):
        if name == "next":
            lake.file("next", name="next")
        assert tidegate("load", name).exit_code == 0
        assert tidegate("publish", name).exit_code == 0
    restore(lake)

    refused = refusal_of("fsck", "next", "--rebuild")

    assert refused["code"] == "TargetRegistered"
    assert set(known(lake)) == {"beside", "orders"}
    lake.file("orders", **place)
    typed(refused["message"])
    assert ids(lake) == [1, 2, 3, 4, 5]
    lake.file("orders", **place)
    for name in ("orders", "next"):
        assert tidegate("fsck", name).exit_code == 0
    assert_goes_on(lake)


@pytest.mark.follows("TargetOwned")
def test_target_registered_for_a_pipeline_that_lives_is_refused_by_every_look(
    lake: SmallLake,
) -> None:
    """Its files are gone, and only the ledger knows."""
    shutil.rmtree(lake.target)
    shutil.rmtree(lake.work)
    lake.file("next", name="next")

    for line in (["load", "next"], ["status", "next"]):
        assert refusal_of(*line)["code"] == "TargetOwned"
    assert tidegate("check", "next").exit_code == 1
    assert tidegate("fsck", "next").exit_code == 1
    with pytest.raises(TargetOwned):
        lake.pipeline(name="next").adopt(NOW)
    # What the message says to do.
    lake.file("next", name="next", target={"path": str(lake.root / "published" / "next")})
    assert tidegate("load", "next").exit_code == 0


def test_retirement_that_is_unknown_to_a_lost_ledger_changes_nothing(lake: SmallLake) -> None:
    retire(lake)
    (lake.root / "ledger.db").unlink()

    with pytest.raises(PipelineRetired):
        lake.pipeline().adopt(NOW)
    assert tidegate("load", "next").exit_code == 0
    assert tidegate("publish", "next").exit_code == 0
    assert ids(lake) == [1, 2, 3, 4]


@pytest.mark.follows("PartitionStands", "LedgerLost")
@pytest.mark.parametrize("ledger", ["lost", "from before"])
def test_successor_with_rows_for_a_partition_that_was_left_is_restored(
    lake: SmallLake, ledger: str
) -> None:
    assert tidegate("retire", "orders", "--yes").exit_code == 0
    lake.file("next", name="next")
    mine = lake.commit({1: 1, 3: 2})
    assert tidegate("load", "next").exit_code == 0
    assert "its files in" in " ".join(tidegate("publish", "next").output.split())
    standing = ids(lake)
    if ledger == "lost":
        (lake.root / "ledger.db").unlink()
    else:
        restore(lake)

    refused = refusal_of("load", "next")

    assert refused["code"] == "LedgerLost"
    typed(refused["message"])
    assert ids(lake) == standing == [1, 2, 3, 4, *mine[1:]]
    assert tidegate("fsck", "next").exit_code == 0
    assert "its files in" in " ".join(tidegate("publish", "next").output.split())
    # What the message says to do; the marker may be left behind.
    for file in (lake.target / FIRST).glob("*.parquet"):
        file.unlink()
    assert tidegate("publish", "next", FIRST).exit_code == 0
    assert lake.ids()[FIRST] == [1, 2, 3, mine[0]]
    assert lake.ids()[SECOND] == [4]
    assert tidegate("fsck", "next").exit_code == 0
    assert tidegate("fsck", "next", "--rebuild").exit_code == 0
    assert tidegate("fsck", "next").exit_code == 0


def test_nothing_is_restored_beside_a_pipeline_that_is_registered(lake: SmallLake) -> None:
    """Also if it is the ledger alone that says so."""
    retire(lake)
    assert tidegate("load", "next").exit_code == 0
    (lake.target / ".tidegate-retired-orders.record").rename(lake.root / "kept")
    restore(lake)

    with pytest.raises(TargetRegistered):
        lake.pipeline(name="next").restore_ledger()

    assert set(known(lake)) == {"beside", "orders"}


# ── A ledger that is behind when a pipeline is retired ──


def published_later(lake: SmallLake) -> None:
    """Publish a day that the copy of the ledger does not know."""
    lake.commit({3: 1})
    assert tidegate("load", "orders").exit_code == 0
    assert tidegate("publish", "orders").exit_code == 0


@pytest.mark.follows("LedgerBehind")
def test_ledger_that_is_behind_retires_nothing(lake: SmallLake) -> None:
    """Its record would leave out a day, and the successor would publish beside that."""
    lake.file("orders")
    published_later(lake)
    restore(lake)
    before = lake.stamps()

    refused = refusal_of("retire", "orders", "--yes")

    assert refused["code"] == "LedgerBehind"
    assert lake.stamps() == before
    typed(refused["message"])
    retire(lake)
    assert tidegate("load", "next").exit_code == 0
    assert tidegate("publish", "next").exit_code == 0
    assert ids(lake) == [1, 2, 3, 4, 5]
    ended = json.loads((lake.target / ".tidegate-retired-orders.record").read_text())
    assert ended["partitions"] == {FIRST: 1, SECOND: 1, THIRD: 1}


def test_marker_that_neither_ledger_nor_work_directory_knows_stops_a_retirement(
    lake: SmallLake,
) -> None:
    lake.file("orders")
    work = lake.target.parent / ".tidegate-orders"
    shutil.copytree(work, lake.root / "work.before")
    published_later(lake)
    restore(lake)
    shutil.rmtree(work)
    shutil.copytree(lake.root / "work.before", work)

    refused = refusal_of("retire", "orders", "--yes")

    assert refused["code"] == "LedgerBehind"
    assert f"a marker of revision 1 in {THIRD}" in refused["message"]


@pytest.mark.on_disk
@each_death
def test_commit_that_an_older_ledger_does_not_know_stops_a_retirement(
    lake: SmallLake, every: int
) -> None:
    lake.file("orders")
    lake.commit({2: 1})
    load(lake.pipeline())
    shutil.copy(lake.root / "ledger.db", lake.root / BEFORE)
    refused = 0
    for storage in deaths(lake, lake.root.parent / "before", every):
        with contextlib.suppress(Killed):
            publish(lake.pipeline(storage))
        ledger = lake.pipeline().ledger
        begun = ledger.publications.unrecorded(day(2)) is not None
        if begun or ledger.partitions.get(day(2)).revision == 2:
            restore(lake)
            assert refusal_of("retire", "orders", "--yes")["code"] == "LedgerBehind"
            refused += 1
    assert refused * every > 5


def test_successor_does_not_publish_beside_a_marker_that_no_record_lists(lake: SmallLake) -> None:
    """As after a retirement by an earlier version, whose ledger was behind."""
    lake.file("orders")
    published_later(lake)
    assert tidegate("retire", "orders", "--yes").exit_code == 0
    record = lake.target / ".tidegate-retired-orders.record"
    ended = json.loads(record.read_text())
    del ended["partitions"][THIRD]
    record.write_text(json.dumps(ended))
    lake.file("next", name="next")
    assert tidegate("load", "next").exit_code == 0

    told = " ".join(tidegate("publish", "next", THIRD).output.split())

    assert "its files in" in told
    assert ids(lake) == [1, 2, 3, 4, 5]
