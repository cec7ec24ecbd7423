"""A ledger that is gone is restored as it was, whatever kinds of windows it held."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from crash.scenario import ledger_content
from small_lake import NOW, SmallLake, day, interval, load, local, look_again, publish
from tidegate.errors import LedgerDamaged
from tidegate.model.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.pipeline import Pipeline

NARROW = {"source": {"start": "latest", "read": {"filter": "id <= 4"}}}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys={"source": {"start": "latest"}})


def finish(pipeline: Pipeline, planned: object, hour: int) -> None:
    now = NOW.replace(hour=hour)
    pipeline.finish_load(planned, now, local)  # type: ignore[arg-type]
    publish(pipeline, now=now)


def lived(lake: SmallLake) -> None:
    """Load days 2 and 3 after a start at the head, so that day 1 is history."""
    lake.commit({1: 3})
    load(lake.pipeline())
    for number in (2, 3):
        lake.commit({1: 1, number: 2})
        load(lake.pipeline(), interval(number), now=NOW.replace(minute=number))
        publish(lake.pipeline(), now=NOW.replace(minute=number))


def history(lake: SmallLake) -> None:
    load(lake.pipeline(), interval(1), now=NOW.replace(hour=1))
    publish(lake.pipeline(), now=NOW.replace(hour=1))


def rebuild(lake: SmallLake) -> None:
    pipeline = lake.pipeline()
    now = NOW.replace(hour=2)
    finish(pipeline, pipeline.rebuild([day(1)], Run("rebuild", "cli"), now), 2)


def rebuild_to_nothing(lake: SmallLake) -> None:
    pipeline = lake.pipeline(source={"read": {"filter": "id > 100"}})
    now = NOW.replace(hour=3)
    finish(pipeline, pipeline.rebuild([day(1)], Run("rebuild", "cli"), now), 3)


def there_and_back(lake: SmallLake) -> None:
    for hour, pipeline in ((4, lake.pipeline(**NARROW)), (5, lake.pipeline())):
        planned = pipeline.replay(1, Run("replay", "cli"), NOW.replace(hour=hour))
        finish(pipeline, planned, hour)


def lose_and_restore(lake: SmallLake) -> None:
    """Restore a ledger that is lost: every table has what it had."""
    before = ledger_content(lake.root)
    for path in lake.root.glob("ledger.db*"):
        path.unlink()

    lake.pipeline().restore_ledger()

    look_again(lake.pipeline(), NOW)
    after = ledger_content(lake.root)
    for table, content in before.items():
        assert after[table] == content, table


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([history], id="history"),
        pytest.param([rebuild], id="rebuild"),
        pytest.param([history, rebuild], id="rebuild after history"),
        pytest.param([rebuild, history], id="history after rebuild, by a clock that is behind"),
        pytest.param([rebuild_to_nothing], id="rebuild that found nothing"),
        pytest.param([there_and_back], id="configuration there and back"),
    ],
)
def test_restored_ledger_is_the_one_that_was_lost(
    lake: SmallLake, steps: list[Callable[[SmallLake], None]]
) -> None:
    lived(lake)
    for step in steps:
        step(lake)
    rows = lake.ids()

    lose_and_restore(lake)

    ids = lake.commit({1: 1})
    load(lake.pipeline(), now=NOW.replace(hour=9))
    publish(lake.pipeline(), now=NOW.replace(hour=9))
    assert lake.ids()["dt=2026-02-01"] == sorted(rows["dt=2026-02-01"] + ids)


@pytest.mark.follows("LedgerDamaged")
def test_damaged_ledger_moved_away_and_restored_is_the_one_that_it_was(lake: SmallLake) -> None:
    """What `LedgerDamaged` says to do, done."""
    lived(lake)
    before = ledger_content(lake.root)
    (lake.root / "ledger.db").write_bytes(b"overwritten" * 1000)
    with pytest.raises(LedgerDamaged, match=r"Move it away.*tidegate fsck PIPELINE --rebuild"):
        lake.pipeline()

    for path in lake.root.glob("ledger.db*"):
        path.rename(path.with_name(f"away-{path.name}"))
    lake.pipeline().restore_ledger()

    look_again(lake.pipeline(), NOW)
    after = ledger_content(lake.root)
    for table, content in before.items():
        assert after[table] == content, table


def plans_hold_options_of_every_kind(lake: SmallLake) -> None:
    """Write into the plans that stand what versions before options per kind wrote there."""
    foreign = {"path": None, "format": "parquet", "partition_by": {}, "path_regex": None}
    foreign |= {"on_bad_path": "fail", "on_changed_file": "fail", "default_partition_name": "none"}
    for path in lake.work.rglob("plan.json"):
        raw = json.loads(path.read_text())
        raw["config"]["source"] |= foreign
        path.write_text(json.dumps(raw))


def test_lost_ledger_is_restored_from_plans_of_an_earlier_version(lake: SmallLake) -> None:
    lake.keys["commit"] = {"trigger": "process-time"}
    lived(lake)
    plans_hold_options_of_every_kind(lake)
    published = lake.ids()

    lose_and_restore(lake)

    ids = lake.commit({4: 2})
    load(lake.pipeline(), interval(4))
    publish(lake.pipeline())
    assert lake.ids() == {**published, "dt=2026-02-04": ids}


def test_gate_takes_the_columns_of_nothing_from_plans_of_an_earlier_version(
    lake: SmallLake,
) -> None:
    lake.keys["commit"] = {"trigger": "process-time"}
    lived(lake)
    pipeline = lake.pipeline(source={"read": {"filter": "id > 100"}})
    planned = pipeline.rebuild([day(2)], Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    plans_hold_options_of_every_kind(lake)
    suite = lake.root / "suite.json"
    has_amounts = {"type": "expect_column_to_exist", "kwargs": {"column": "amount"}}
    suite.write_text(json.dumps({"name": "sane", "expectations": [has_amounts]}))

    publish(lake.pipeline(gate={"suite": str(suite)}))

    state = lake.pipeline().ledger.partitions.get(day(2))
    assert (state.revision, lake.ids()["dt=2026-02-02"]) == (2, [])


@pytest.mark.on_disk
def test_ledger_that_is_lost_after_a_sweep_is_restored_as_it_was(lake: SmallLake) -> None:
    """Records are never garbage, whatever is kept of the files that they name."""
    lake.keys = {**lake.keys, "rows": [{"name": "few", "where": "id <> 2"}]}
    lived(lake)
    there_and_back(lake)
    rebuild(lake)
    sweeping = lake.pipeline(retention={"quarantine": "0s"})
    garbage = sweeping.garbage(NOW.replace(year=2036), NOW - NOW)

    swept = [item.path for item in sweeping.sweep(garbage)]

    assert {
        kind for kind in ("/retired/", "/quarantine/", "/staged/") for path in swept if kind in path
    } == {"/retired/", "/quarantine/", "/staged/"}
    lose_and_restore(lake)
    assert list(lake.pipeline().findings()) == []
    assert lake.pipeline().garbage(NOW.replace(year=2036), NOW - NOW) == ()
