"""Reading a partition whole again gives what a clean run would, whatever came before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from small_lake import NOW, SmallLake, day, interval, load, local, publish
from tidegate.cli.explain_view import contribution_table
from tidegate.errors import PublicationLapsed
from tidegate.ledger.overview import read_overview
from tidegate.model.run import Run
from tidegate.pipeline.state.plan_files import read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidegate.model.partition import Partition
    from tidegate.pipeline import Pipeline


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def rebuild(pipeline: Pipeline, *partitions: Partition) -> None:
    planned = pipeline.rebuild(partitions, Run("rebuild", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def replay(pipeline: Pipeline, sequence: int) -> None:
    planned = pipeline.replay(sequence, Run("replay", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)


def progress(pipeline: Pipeline) -> tuple[Any, Any]:
    state = pipeline.ledger.pipeline.find()
    assert state is not None
    return state.checkpoint, state.watermark


def named(days: dict[int, Sequence[int]]) -> dict[str, list[int]]:
    return {f"dt=2026-02-{number:02d}": sorted(ids) for number, ids in days.items()}


def standing(pipeline: Pipeline) -> dict[str, str]:
    """Ask `explain` for each window whether its rows are in the revision."""
    table = contribution_table(pipeline.explain(day(1), NOW))
    names, *_, stands = (map(str, column.cells) for column in table.columns)
    return dict(zip(names, stands, strict=True))


def test_rows_that_a_rebuild_takes_the_place_of_are_counted_once(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    rebuild(pipeline, day(1))

    pending = pipeline.explain(day(1), NOW).report
    before = standing(pipeline)
    publish(pipeline)
    committed = pipeline.explain(day(1), NOW).report

    assert (pending.rows_pending, pending.windows, before) == (
        3,
        (),
        {"1": "replaced", "2": "not yet"},
    )
    assert (committed.state.rows, committed.windows) == (3, (2,))
    assert standing(pipeline) == {"1": "replaced", "2": "yes"}


def test_rows_that_stand_are_shown_until_the_rebuild_is_committed(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    rebuild(pipeline, day(1))

    assert standing(pipeline) == {"1": "yes", "2": "not yet"}


def test_rebuild_since_a_proposal_is_told_as_what_it_is(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    shown = pipeline.propose(day(1), "cli", NOW)
    assert shown is not None
    pipeline.gate(day(1), shown.digest, "cli", NOW)
    rebuild(pipeline, day(1))

    with pytest.raises(PublicationLapsed, match="all its rows were read again since, by window 2"):
        pipeline.commit(day(1), shown.digest, "cli", NOW)


def test_rebuild_gives_the_rows_that_stood_and_moves_nothing_else(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 2})
    lake.commit({1: 2, 2: 1, 3: 1})
    pipeline = lake.pipeline()
    load(pipeline, interval(1))
    load(pipeline, interval(2))
    publish(pipeline)
    rows, stood, others = lake.ids(), progress(pipeline), lake.stamps()

    rebuild(pipeline, day(1))
    publish(pipeline)

    assert lake.ids() == rows
    assert progress(pipeline) == stood
    kept = {name: stamp for name, stamp in lake.stamps().items() if "dt=2026-02-02" in name}
    assert kept == {name: stamp for name, stamp in others.items() if "dt=2026-02-02" in name}


def test_rebuild_of_a_partition_before_it_was_published_gives_its_rows(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 2})
    pipeline = lake.pipeline()
    load(pipeline)

    rebuild(pipeline, day(1))
    publish(pipeline)

    assert lake.ids() == named({1: ids[:3]})


def test_loads_after_a_rebuild_are_added(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    rebuild(pipeline, day(1))
    ids += lake.commit({1: 2})
    load(pipeline)
    publish(pipeline)

    assert lake.ids() == named({1: ids})


def test_replay_of_a_window_before_the_rebuild_changes_nothing(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    rebuild(pipeline, day(1))
    publish(pipeline)
    before = lake.stamps()

    changed = lake.pipeline(source={"read": {"filter": "id > 1"}})
    replay(changed, 1)
    outcomes = publish(changed)

    assert {item.state for item in outcomes} == {"committed", "pending"}
    assert lake.stamps() == before


def test_rebuild_with_a_changed_filter_replaces_all_rows(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    more = lake.commit({1: 2})
    pipeline = lake.pipeline()
    load(pipeline, interval(1))
    load(pipeline, interval(2))
    publish(pipeline)

    changed = lake.pipeline(source={"read": {"filter": f"id >= {more[0]}"}})
    rebuild(changed, day(1))
    publish(changed)

    assert lake.ids() == named({1: more})


def test_rebuild_that_finds_no_row_empties_the_partition(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)

    changed = lake.pipeline(source={"read": {"filter": "id > 3"}})
    rebuild(changed, day(1))
    publish(changed)

    assert lake.ids() == named({1: []})
    assert changed.ledger.partitions.get(day(1)).revision == 2


def test_rebuild_twice_counts_once(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})
    pipeline = lake.pipeline()
    load(pipeline)
    for _ in range(2):
        rebuild(pipeline, day(1))
        publish(pipeline)

    assert lake.ids() == named({1: ids[:3]})


@pytest.mark.parametrize("start", ["latest", "earliest", "full"])
@pytest.mark.parametrize("order", ["history first", "rebuild first"])
def test_rebuild_beside_history_reads_every_row_once(
    lake: SmallLake, start: str, order: str
) -> None:
    ids = lake.commit({1: 3}) + lake.commit({1: 2})
    pipeline = lake.pipeline(source={"start": start})
    load(pipeline)
    ids += lake.commit({1: 4, 2: 1})[:4]
    load(pipeline, interval(3))

    if order == "history first":
        load(pipeline, interval(1))
        publish(pipeline)
        rebuild(pipeline, day(1))
    else:
        rebuild(pipeline, day(1))
        publish(pipeline)
        load(pipeline, interval(1))
    publish(pipeline)
    ids += lake.commit({1: 1})
    load(pipeline, interval(4))
    publish(pipeline)

    assert lake.ids() == named({1: ids})


@pytest.mark.parametrize("order", ["history first", "rebuild first"])
def test_rebuild_of_a_partition_that_no_window_brought_reads_every_row_once(
    lake: SmallLake, order: str
) -> None:
    ids = lake.commit({1: 3}) + lake.commit({1: 2})
    pipeline = lake.pipeline(source={"start": "latest"})
    load(pipeline)
    others = lake.commit({2: 4, 3: 1})[:4]
    load(pipeline, interval(3))
    assert [str(item.partition) for item in pipeline.ledger.partitions.all()] == [
        "dt=2026-02-02",
        "dt=2026-02-03",
    ]

    if order == "history first":
        load(pipeline, interval(1))
        rebuild(pipeline, day(1))
    else:
        rebuild(pipeline, day(1))
        publish(pipeline)
        load(pipeline, interval(1))
    publish(pipeline)
    for sequence in (1, 2, 3):
        replay(pipeline, sequence)
    publish(pipeline)

    assert lake.ids() == lake.listed_ids() == named({1: ids, 2: others})


def test_rebuild_of_partitions_that_no_window_brought_is_restored_with_the_ledger(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 3})
    pipeline = lake.pipeline(source={"start": "latest"})
    load(pipeline)
    others = lake.commit({2: 2, 3: 1})[:2]
    load(pipeline, interval(2))
    rebuild(pipeline, day(9))
    rebuild(pipeline, day(1))
    for path in lake.root.glob("ledger.db*"):
        path.unlink()

    again = lake.pipeline(source={"start": "latest"})
    again.restore_ledger()
    publish(again)

    assert lake.ids() == lake.listed_ids() == named({1: ids, 2: others})
    assert again.ledger.partitions.find(day(9)) is None
    assert list(again.findings()) == []


def test_rebuild_before_the_first_load_has_nothing_to_read(lake: SmallLake) -> None:
    lake.commit({1: 3})

    assert lake.pipeline().rebuild([day(1)], Run("r", "cli"), NOW) == ()


def test_rebuild_of_files_reads_the_listing_at_the_checkpoint(lake: SmallLake) -> None:
    import pyarrow.parquet as pq

    folder = lake.root / "drop"
    folder.mkdir()
    lake.source = {"kind": "files", "path": str(folder), "start": "latest"}
    rows = _rows(lake, {1: 3, 2: 1})
    pq.write_table(rows, folder / "a.parquet")
    pipeline = lake.pipeline()
    load(pipeline)
    pq.write_table(_rows(lake, {1: 2, 2: 1}), folder / "b.parquet")
    load(pipeline)
    publish(pipeline)
    assert lake.ids() == named({1: [5, 6]})

    pq.write_table(_rows(lake, {1: 2}), folder / "c.parquet")
    rebuild(pipeline, day(1))
    publish(pipeline)

    assert lake.ids() == named({1: [1, 2, 3, 5, 6]})
    notes = read_plan(pipeline.storage, str(pipeline.ledger.plans.uri(2))).notes
    assert any("also the rows of them that are from before `source.start`" in it for it in notes)


def _rows(lake: SmallLake, days: dict[int, int]) -> Any:
    before = lake.made
    lake.commit(days)
    return lake.table.scan(f"id > {before}").to_arrow()


def overview(pipeline: Pipeline) -> dict[str, int]:
    (found,) = read_overview(pipeline.ledger.engine)
    return dict(found.partitions)


def test_partition_is_late_by_new_rows_and_changed_by_a_replay_or_a_rebuild(
    lake: SmallLake,
) -> None:
    for number in (1, 2, 3):
        lake.commit({number: 2, 9: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    pipeline = lake.pipeline(rows=[{"name": "few", "where": "id > 1", "on_failure": "quarantine"}])

    rebuild(pipeline, day(1))
    rebuilt = pipeline.ledger.windows.all()[-1].summary
    lake.commit({2: 4})
    added = load(pipeline).summary

    report = pipeline.status(NOW)
    assert report is not None
    names = {item.state.partition: item.name for item in report.partitions}
    assert [names[day(number)] for number in (1, 2, 3)] == ["changed", "late", "committed"]
    assert overview(pipeline) == {"changed": 1, "late": 1, "committed": 1, "pending": 1}
    assert rebuilt is not None
    assert (rebuilt.rows_late, added.rows_late) == (0, 4)
    publish(pipeline)
    assert overview(pipeline) == {"committed": 3, "pending": 1}
    replay(lake.pipeline(rows=[]), 1)
    assert overview(pipeline).get("late") is None
    lake.commit({1: 1})
    load(lake.pipeline())
    assert overview(pipeline)["late"] == 1
