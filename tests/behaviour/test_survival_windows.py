"""Taking windows with a real table: ahead, behind, before the first, beside another (design §4)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from small_lake import NOW, SmallLake, day, decide, interval, known, later, load, local, publish
from tidegate.errors import WindowOpen, WindowOverlap
from tidegate.model.plan import WindowKind
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

CLAIM = timedelta(minutes=2)
"""After this time without a renewal a window has run out."""


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def progress(pipeline: Pipeline) -> tuple[object, object]:
    state = pipeline.ledger.pipeline.find()
    assert state is not None
    return state.checkpoint, state.watermark


def kinds(pipeline: Pipeline) -> list[str]:
    return [item.window.kind.value for item in pipeline.ledger.windows.all()]


def test_runs_ahead_take_consecutive_windows_up_to_their_intervals(lake: SmallLake) -> None:
    for number in (1, 2, 3):
        lake.commit({number: 2})
    pipeline = lake.pipeline()

    for number in (1, 2, 3):
        load(pipeline, interval(number))

    ranges = [item.window.range for item in pipeline.ledger.windows.all()]
    assert [item.start_exclusive for item in ranges[1:]] == [
        item.end_inclusive for item in ranges[:-1]
    ]
    assert ranges[0].start_exclusive is None
    assert [item.end_inclusive.time for item in ranges] == [known(n - 0.5) for n in (1, 2, 3)]


def test_run_that_skips_intervals_takes_everything_before_its_end(lake: SmallLake) -> None:
    ids = [lake.commit({number: 2}) for number in (1, 2, 3)]
    pipeline = lake.pipeline()

    load(pipeline, interval(3))
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": ids[0], "dt=2026-02-02": ids[1]}


def test_run_without_anything_new_takes_nothing(lake: SmallLake) -> None:
    lake.commit({1: 2})
    pipeline = lake.pipeline()
    load(pipeline, interval(1))

    assert pipeline.look(Run("b", "cli", interval(2)), NOW).kind == "none"
    assert load(pipeline, interval(2)).windows == ()


def test_reprocess_completed_twice_leaves_bytes_and_mtimes(lake: SmallLake) -> None:
    for number in (1, 2, 3, 4):
        lake.commit({number: 3, max(number - 1, 1): 1})
    pipeline = lake.pipeline()
    for number in (1, 2, 3, 4):
        load(pipeline, interval(number))
        publish(pipeline)
    before, stood = lake.stamps(), progress(pipeline)

    for _ in range(2):
        for number in (1, 2, 3, 4):
            run = Run(f"again-{number}", "cli", interval(number))
            assert pipeline.look(run, NOW).kind == "replay"
            planned = pipeline.plan(run, NOW)
            assert pipeline.engine_for(planned) == "none"
            assert pipeline.announce(planned, NOW).partitions == ()
            assert {item.state for item in publish(pipeline)} == {"pending"}

    assert lake.stamps() == before
    assert progress(pipeline) == stood
    assert len(kinds(pipeline)) == 4


def test_look_behind_without_a_window_names_the_one_that_covers(lake: SmallLake) -> None:
    lake.commit({1: 1})
    lake.commit({2: 1})
    lake.commit({3: 1})
    pipeline = lake.pipeline()
    load(pipeline, interval(3))

    look = pipeline.look(Run("b", "cli", interval(1)), NOW)

    assert look.kind == "none"
    assert "window 1" in look.detail
    assert load(pipeline, interval(1)).windows == ()


def starts(lake: SmallLake) -> dict[str, object]:
    second = lake.table.metadata.snapshots[1].snapshot_id
    return {"after": {"after": str(second)}, "latest": "latest"}


@pytest.mark.parametrize("start", ["after", "latest"])
def test_interval_before_the_first_window_becomes_history(lake: SmallLake, start: str) -> None:
    ids = [lake.commit({1: 3}), lake.commit({1: 2, 2: 2})]
    pipeline = lake.pipeline(source={"start": starts(lake)[start]})
    assert load(pipeline).windows == ()
    ids.append(lake.commit({3: 2, 4: 1}))
    load(pipeline, interval(3))
    publish(pipeline)
    stood = progress(pipeline)
    assert lake.ids() == {"dt=2026-02-03": ids[2][:2]}

    look = pipeline.look(Run("h", "cli", interval(1)), NOW)
    load(pipeline, interval(1))
    publish(pipeline)

    assert look.kind == "changes"
    assert kinds(pipeline) == ["load", "history"]
    assert progress(pipeline) == stood
    assert lake.ids() == {"dt=2026-02-01": ids[0], "dt=2026-02-03": ids[2][:2]}


def test_history_interval_again_is_replayed_and_changes_nothing(lake: SmallLake) -> None:
    lake.commit({1: 3})
    lake.commit({2: 2})
    pipeline = lake.pipeline(source={"start": "latest"})
    load(pipeline)
    lake.commit({5: 1})
    load(pipeline, interval(3))
    load(pipeline, interval(1))
    publish(pipeline)
    before = lake.stamps()

    look = pipeline.look(Run("h", "cli", interval(1)), NOW)
    load(pipeline, interval(1))
    publish(pipeline)

    assert look.kind == "replay"
    assert kinds(pipeline) == ["load", "history"]
    assert lake.stamps() == before


@pytest.mark.follows("WindowOverlap")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(interval(1), interval(1, days=2), id="ends later"),
        pytest.param(interval(1, days=2), interval(1), id="ends earlier"),
        pytest.param(interval(2), interval(1, days=2), id="begins earlier"),
        pytest.param(interval(1, days=2), interval(2, days=2), id="begins later"),
    ],
)
def test_history_interval_that_overlaps_in_part_is_refused(
    lake: SmallLake, first: object, second: object
) -> None:
    for number in (1, 2, 3):
        lake.commit({number: 1})
    pipeline = lake.pipeline(source={"start": "latest"})
    load(pipeline)
    lake.commit({4: 1})
    load(pipeline, interval(4))
    load(pipeline, first)  # type: ignore[arg-type]

    with pytest.raises(WindowOverlap, match="history window 2"):
        load(pipeline, second)  # type: ignore[arg-type]

    assert kinds(pipeline) == ["load", "history"]
    # What the message says to do.
    assert load(pipeline, first).windows == (2,)  # type: ignore[arg-type]


def test_first_run_that_starts_at_latest_fixes_its_start_by_looking(lake: SmallLake) -> None:
    """A sensor only looks: what comes after its first look has to be found by the next one."""
    lake.commit({1: 1})
    pipeline = lake.pipeline(source={"start": "latest"})
    assert pipeline.look(Run("a", "cli"), NOW).kind == "none"
    ids = lake.commit({2: 2, 3: 1})

    again = lake.pipeline(source={"start": "latest"})

    assert again.look(Run("b", "cli"), NOW).kind == "changes"
    load(again)
    publish(again)
    assert lake.ids() == {"dt=2026-02-02": ids[:2]}


def test_load_while_another_is_open_names_the_run_that_holds_it(lake: SmallLake) -> None:
    lake.commit({1: 1})
    first = lake.pipeline()
    first.plan(Run("a", "scheduled__a"), NOW)

    with pytest.raises(WindowOpen, match="scheduled__a"):
        load(lake.pipeline(), owner="scheduled__b")


def test_load_after_the_holders_time_is_over_goes_on_with_its_window(lake: SmallLake) -> None:
    ids = lake.commit({1: 2, 2: 1})
    first = lake.pipeline()
    first.plan(Run("a", "scheduled__a"), NOW)

    second = later(lake.pipeline(), CLAIM)
    load(second, owner="scheduled__b")
    publish(second)

    assert lake.ids() == {"dt=2026-02-01": ids[:2]}
    assert kinds(second) == ["load"]


def test_load_that_takes_over_a_dead_runs_window_loads_its_own_as_well(lake: SmallLake) -> None:
    first_ids = lake.commit({1: 2})
    dead = lake.pipeline()
    dead.plan(Run("a", "scheduled__a", interval(1)), NOW)
    own_ids = lake.commit({2: 3, 3: 1})

    heir = later(lake.pipeline(), CLAIM)
    announced = heir.load(Run("b", "scheduled__b", interval(2)), NOW, local)
    publish(heir)

    assert announced.windows == (1, 2)
    assert announced.summary.rows_read == len(first_ids) + len(own_ids)
    assert lake.ids() == {"dt=2026-02-01": first_ids, "dt=2026-02-02": own_ids[:3]}


def test_backfill_while_a_window_is_open_leaves_both_to_their_turn(lake: SmallLake) -> None:
    lake.commit({1: 1})
    pipeline = lake.pipeline()
    load(pipeline, interval(1))
    lake.commit({2: 1})
    pipeline.plan(Run("a", "scheduled__a", interval(2)), NOW)

    with pytest.raises(WindowOpen):
        load(pipeline, interval(1), owner="backfill")

    assert [item.sealed for item in pipeline.ledger.windows.all()] == [True, False]


def test_replay_back_to_the_configuration_before_gives_the_rows_before(lake: SmallLake) -> None:
    """The files of the first plan were retired, and may be swept; its names cannot come back."""
    ids = lake.commit({1: 4, 2: 1})
    narrow = {"source": {"read": {"filter": "id <= 2"}}}
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    changed = lake.pipeline(**narrow)
    replay(changed, 1)
    publish(changed)
    assert lake.ids() == {"dt=2026-02-01": ids[:2]}

    back = lake.pipeline()
    replay(back, 1)
    publish(back)
    once = lake.stamps()
    replay(back, 1)
    publish(back)

    assert lake.ids() == {"dt=2026-02-01": ids[:4]}
    assert lake.stamps() == once


def replay(pipeline: Pipeline, sequence: int) -> None:
    run = Run("replay", "cli")
    pipeline.finish_load(pipeline.replay(sequence, run, NOW), NOW, local)


@pytest.mark.on_disk
@pytest.mark.follows("StagedFileMissing")
def test_replay_after_a_staged_file_was_lost_reads_it_again(lake: SmallLake) -> None:
    """What the message of StagedFileMissing tells people to do."""
    ids = lake.commit({1: 4, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    for path in (lake.work / "windows").rglob("*.parquet"):
        if "dt=2026-02-01" in str(path):
            path.unlink()
    failed = next(iter(pipeline.publish_all("cli", NOW)))
    assert "tidegate replay" in (failed.error or "")

    replay(pipeline, 1)
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": ids[:4]}


@pytest.mark.follows("StagedFileMissing")
@pytest.mark.parametrize("lost", ["staged", "published"])
def test_file_lost_while_a_person_decided_is_found_before_the_commit_begins(
    lake: SmallLake, lost: str
) -> None:
    """What is prepared must be finished: it would stand in the way of the remedy for ever."""
    ids = lake.commit({1: 4, 2: 1})[:4]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    ids += lake.commit({1: 2}, amount=10)
    holding = lake.pipeline(rows=[{"name": "sane", "where": "amount < 9", "on_failure": "hold"}])
    load(holding)
    publish(holding)
    decide(holding, day(1))
    before = lake.stamps()
    places = {"staged": lake.work / "windows" / "000002", "published": lake.target}
    gone = next(path for path in places[lost].rglob("part-*") if "dt=2026-02-01" in str(path))
    gone.unlink()

    failed = next(iter(holding.publish_all("cli", NOW)))

    assert gone.name in (failed.error or "")
    left = {name: stamp for name, stamp in before.items() if not name.endswith(gone.name)}
    assert lake.stamps() == left
    planned = holding.rebuild([day(1)], Run("rebuild", "cli"), NOW)
    holding.finish_load(planned, NOW, local)
    publish(holding)
    decide(holding, day(1))
    publish(holding)
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_window_of_a_rebuild_that_died_is_resumed_by_the_same_rebuild(lake: SmallLake) -> None:
    ids = lake.commit({1: 4, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    pipeline.rebuild([day(1)], Run("r", "cli"), NOW)

    again = lake.pipeline()
    planned = again.rebuild([day(1)], Run("r2", "cli"), NOW)

    assert [item.sequence for item in planned] == [2]
    assert [item.window.kind for item in again.ledger.windows.all()] == [
        WindowKind.LOAD,
        WindowKind.REBUILD,
    ]
    again.finish_load(planned, NOW, local)
    publish(again)
    assert lake.ids() == {"dt=2026-02-01": ids[:4]}
