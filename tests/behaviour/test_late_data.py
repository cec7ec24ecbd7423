"""Late rows are published, held, kept apart, proposed or rejected, as the pipeline file says."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from small_lake import (
    DAY,
    NOW,
    SmallLake,
    day,
    decide,
    interval,
    load,
    local,
    look_again,
    publish,
)
from tidegate.errors import LateRootUnfit, NotHeld
from tidegate.ledger.schema import contribution, metadata, partition, pipeline, window
from tidegate.model.aside import Aside
from tidegate.model.run import Run
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

DAY_1, DAY_2 = "dt=2026-02-01", "dt=2026-02-02"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def with_late_rows(lake: SmallLake, late_data: Any, late: int = 2) -> tuple[Pipeline, list[int]]:
    """Publish four rows of a day, then load late ones; the pipeline and the ids on time."""
    first = lake.commit({1: 4, 2: 1})
    lake.commit({1: late, 3: 1})
    opened = lake.pipeline(commit={"late_data": late_data})
    load(opened, interval(1))
    publish(opened)
    load(opened, interval(2))
    return opened, first[:4]


def replay(opened: Pipeline, sequence: int) -> None:
    planned = opened.replay(sequence, Run("replay", "cli"), NOW)
    opened.finish_load(planned, NOW, local)


def rebuild(opened: Pipeline, *days: int) -> None:
    planned = opened.rebuild([day(item) for item in days], Run("rebuild", "cli"), NOW)
    opened.finish_load(planned, NOW, local)


def asides(opened: Pipeline, number: int = 1) -> dict[int, Aside | None]:
    return {item.window: item.aside for item in opened.ledger.contributions.to(day(number))}


def ids_below(root: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path in sorted(root.rglob("part-*.parquet")):
        ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
        found.setdefault(path.parent.name, []).extend(ids)
    return {name: sorted(ids) for name, ids in found.items()}


def dump(opened: Pipeline) -> dict[str, list[dict[str, Any]]]:
    """Give the rows of the ledger, but for claims, numbers and what no file has."""
    unlike = {
        pipeline.name: {"next_number", "first_fence", "registered_at"},
        window.name: {"attempt", "owner", "expires", "number", "reserved", "taken_at", "summary"},
        partition.name: {"claim_owner", "claim_fence", "claim_expires", "number", "reserved"},
        "publication": {"proposed_at"},
        "plan": {"planned_at"},
        "revision": {"owner"},
    }
    found = {}
    with opened.ledger.engine.connect() as connection:
        for table in metadata.sorted_tables:
            rows = connection.execute(sa.select(table)).mappings()
            left_out = unlike.get(table.name, set())
            told = [{key: it for key, it in row.items() if key not in left_out} for row in rows]
            if table.name == "publication":
                told = [row for row in told if row["state"] == "recorded"]
            for row in told:
                # The same answer is not stored again.
                row.get("why") and row["why"].pop("evaluated_at")
            found[table.name] = sorted(told, key=str)
    return found


def check_restored(opened: Pipeline) -> None:
    """Check that the files give the ledger again."""
    look_again(opened, NOW)
    before = dump(opened)

    opened.restore_ledger()
    look_again(opened, NOW)

    assert dump(opened) == before


def test_held_rows_wait_and_the_partition_stays_as_it_is(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, {"hold": {"rows": 3}})

    outcome = next(item for item in publish(opened) if item.partition == day(1))

    assert (outcome.state, outcome.revision) == ("pending", 1)
    assert outcome.why is not None
    assert outcome.why.reason is Reason.LATE_HELD
    assert outcome.why.detail == "2 late rows held; released by 3 rows"
    assert lake.ids()[DAY_1] == on_time
    report = opened.explain(day(1), NOW).report
    assert (report.rows_pending, report.rows_aside) == (0, {"late-held": 2})
    check_restored(opened)


def test_load_says_how_many_late_rows_are_held(lake: SmallLake) -> None:
    opened, _ = with_late_rows(lake, {"hold": {"rows": 3}})

    summary = opened.ledger.windows.all()[-1].summary

    assert summary is not None
    assert (summary.rows_late, summary.rows_aside) == (2, {"late-held": 2})


@pytest.mark.parametrize(
    ("thresholds", "until", "publishes"),
    [
        pytest.param({"rows": 2}, NOW, True, id="rows, exactly"),
        pytest.param(
            {"age": "2d"}, NOW + 2 * DAY - timedelta(seconds=1), False, id="age, just short"
        ),
    ],
)
def test_a_threshold_that_is_reached_releases_all_that_is_held(
    lake: SmallLake, thresholds: dict[str, Any], until: Any, *, publishes: bool
) -> None:
    opened, on_time = with_late_rows(lake, {"hold": thresholds})

    publish(opened, now=until)

    late = [6, 7] if publishes else []
    assert lake.ids()[DAY_1] == sorted([*on_time, *late])
    assert opened.ledger.partitions.get(day(1)).revision == (2 if publishes else 1)
    check_restored(opened)


def test_held_rows_add_up_over_windows(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, {"hold": {"rows": 3}})
    publish(opened)
    more = lake.commit({1: 1})
    load(opened, interval(3))

    publish(opened)

    assert lake.ids()[DAY_1] == sorted([*on_time, 6, 7, *more])
    assert asides(opened) == {1: None, 2: None, 3: None}


def test_released_rows_stay_released_when_the_process_dies_before_the_commit(
    lake: SmallLake,
) -> None:
    opened, _ = with_late_rows(lake, {"hold": {"rows": 2}})
    assert opened.propose(day(1), "cli", NOW) is not None

    opened.restore_ledger()

    assert asides(opened) == {1: None, 2: None}
    assert publish(opened)
    assert lake.ids()[DAY_1] == [1, 2, 3, 4, 6, 7]


def test_without_a_threshold_held_rows_wait_for_a_person(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "hold")
    publish(opened, now=NOW + 99 * DAY)
    assert lake.ids()[DAY_1] == on_time

    released = opened.reopen(day(1), NOW)
    publish(opened)

    assert [item.window for item in released] == [2]
    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    check_restored(opened)


def test_held_rows_count_when_the_policy_is_changed(lake: SmallLake) -> None:
    _, on_time = with_late_rows(lake, "hold")
    opened = lake.pipeline(commit={"late_data": "revise"})

    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]


def test_final_overrules_the_trigger_and_not_the_hold(lake: SmallLake) -> None:
    from tidegate.model.publication import Override

    opened, on_time = with_late_rows(lake, "hold")

    outcome = opened.publish(day(1), "cli", NOW, Override("ada", NOW, "all in"), by_command=True)

    assert outcome.state == "pending"
    assert lake.ids()[DAY_1] == on_time
    assert asides(opened)[2] is Aside.LATE_HELD


def test_replay_of_a_held_window_stays_held_and_one_on_time_is_published(lake: SmallLake) -> None:
    _, on_time = with_late_rows(lake, "hold")
    rule = {"name": "few", "where": "id not in (4, 7)"}
    opened = lake.pipeline(commit={"late_data": "hold"}, rows=[rule])

    replay(opened, 2)
    replay(opened, 1)
    publish(opened)

    assert lake.ids()[DAY_1] == on_time[:3]
    assert opened.explain(day(1), NOW).report.rows_aside == {"late-held": 1}
    opened.reopen(day(1), NOW)
    publish(opened)
    assert lake.ids()[DAY_1] == [*on_time[:3], 6]
    check_restored(opened)


def test_rebuild_reads_held_rows_again_and_nothing_is_held_after_it(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "hold")

    rebuild(opened, 1)
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    assert opened.explain(day(1), NOW).report.rows_aside is None
    assert opened.ledger.partitions.get(day(1)).pending == "none"
    check_restored(opened)


def test_held_rows_survive_gc(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "hold")
    publish(opened)

    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))
    opened.reopen(day(1), NOW)
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]


def test_rows_for_a_partition_without_a_revision_are_never_held(lake: SmallLake) -> None:
    lake.commit({1: 2})
    lake.commit({1: 1, 2: 1})
    opened = lake.pipeline(commit={"late_data": "hold"})
    load(opened, interval(1))
    load(opened, interval(2))

    publish(opened)

    assert lake.ids()[DAY_1] == [1, 2, 3]


@pytest.mark.on_disk
def test_side_rows_are_published_below_the_late_root_alone(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(late_root)}})

    before = opened.explain(day(1), NOW).report
    publish(opened)

    assert before.name == "late"
    assert ids_below(late_root) == {DAY_1: [6, 7]}
    assert lake.ids()[DAY_1] == on_time
    assert not list(late_root.rglob("_SUCCESS"))
    state = opened.ledger.partitions.get(day(1))
    assert (state.revision, state.pending) == (1, "none")
    assert opened.explain(day(1), NOW).report.rows_aside == {"side": 2}
    check_restored(opened)


@pytest.mark.on_disk
def test_replay_of_a_side_window_replaces_its_rows(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    side = {"side": {"path": str(late_root)}}
    opened, on_time = with_late_rows(lake, side)
    publish(opened)
    changed = lake.pipeline(commit={"late_data": side}, rows=[{"name": "few", "where": "id < 7"}])

    replay(changed, 2)
    publish(changed)
    publish(changed)

    assert ids_below(late_root) == {DAY_1: [6]}
    assert lake.ids()[DAY_1] == on_time
    check_restored(changed)


@pytest.mark.on_disk
def test_rebuild_takes_side_rows_into_the_partition(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)

    rebuild(opened, 1)
    publish(opened)

    assert ids_below(late_root) == {}
    assert lake.ids()[DAY_1] == [*on_time, 6, 7]


@pytest.mark.on_disk
def test_reopened_side_rows_move_into_the_partition(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)
    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))

    opened.reopen(day(1), NOW)
    publish(opened)

    assert ids_below(late_root) == {}
    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    check_restored(opened)


@pytest.mark.on_disk
def test_reopened_side_rows_leave_the_late_root_that_the_pipeline_file_no_longer_names(
    lake: SmallLake,
) -> None:
    late_root = lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)
    now = lake.pipeline(commit={"late_data": "revise"})
    more = lake.commit({1: 1})
    load(now, interval(3))
    publish(now)
    assert ids_below(late_root) == {DAY_1: [6, 7]}

    now.reopen(day(1), NOW)
    check_restored(now)
    publish(now)

    assert ids_below(late_root) == {}
    assert lake.ids()[DAY_1] == sorted([*on_time, 6, 7, *more])
    check_restored(now)


@pytest.mark.on_disk
def test_side_rows_stay_below_a_former_late_root_until_they_are_reopened(lake: SmallLake) -> None:
    former, late_root = lake.root / "published" / "former", lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(former)}})
    publish(opened)
    now = lake.pipeline(commit={"late_data": {"side": {"path": str(late_root)}}})
    more = lake.commit({1: 1})
    load(now, interval(3))
    publish(now)
    assert ids_below(former) == {DAY_1: [6, 7]}
    assert ids_below(late_root) == {DAY_1: [6, 7, *more]}

    now.reopen(day(1), NOW)
    publish(now)

    assert ids_below(former) == ids_below(late_root) == {}
    assert lake.ids()[DAY_1] == sorted([*on_time, 6, 7, *more])


@pytest.mark.on_disk
def test_replay_and_rebuild_follow_side_rows_to_the_late_root_that_they_were_put_into(
    lake: SmallLake,
) -> None:
    late_root = lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)
    rule = {"name": "few", "where": "id < 7"}
    now = lake.pipeline(commit={"late_data": "revise"}, rows=[rule])

    replay(now, 2)
    publish(now)
    now.sweep(now.garbage(NOW + 900 * DAY, timedelta(0)))
    assert ids_below(late_root) == {DAY_1: [6]}
    assert lake.ids()[DAY_1] == on_time
    rebuild(now, 1)
    publish(now)

    assert ids_below(late_root) == {}
    assert lake.ids()[DAY_1] == [*on_time, 6]


@pytest.mark.on_disk
def test_former_late_root_that_another_pipeline_owns_by_now_is_left_alone(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    opened, on_time = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)
    owner = late_root / ".tidegate.owner"
    owner.write_text(owner.read_text().replace('"orders"', '"others"'))
    now = lake.pipeline(commit={"late_data": "revise"})

    now.reopen(day(1), NOW)
    publish(now)

    assert ids_below(late_root) == {DAY_1: [6, 7]}
    assert lake.ids()[DAY_1] == [*on_time, 6, 7]


@pytest.mark.on_disk
def test_a_file_that_is_gone_from_the_late_root_comes_back(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    opened, _ = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)
    for path in late_root.rglob("part-*"):
        path.unlink()
    lake.commit({1: 1})
    load(opened, interval(3))

    publish(opened)

    assert ids_below(late_root) == {DAY_1: [6, 7, 9]}


@pytest.mark.on_disk
@pytest.mark.follows("LateRootUnfit")
def test_late_root_of_another_pipeline_is_refused_and_one_of_its_own_is_not(
    lake: SmallLake,
) -> None:
    late_root = lake.root / "published" / "late"
    opened, _ = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)

    def other(root: Path) -> Pipeline:
        return lake.pipeline(
            name="others",
            target={"path": str(lake.root / "published" / "others")},
            commit={"late_data": {"side": {"path": str(root)}}},
        )

    with pytest.raises(LateRootUnfit, match="it belongs to pipeline 'orders'"):
        load(other(late_root))

    assert load(other(lake.root / "published" / "own_late")).windows == (1,)


@pytest.mark.on_disk
def test_reset_that_drops_the_target_drops_the_late_rows(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    opened, _ = with_late_rows(lake, {"side": {"path": str(late_root)}})
    publish(opened)

    opened.drop("cli", NOW)
    load(opened)
    publish(opened)

    assert ids_below(late_root) == {}
    assert lake.ids()[DAY_1] == [1, 2, 3, 4, 6, 7]


@pytest.mark.on_disk
def test_late_root_with_files_of_others_is_refused(lake: SmallLake) -> None:
    late_root = lake.root / "published" / "late"
    late_root.mkdir(parents=True)
    (late_root / "part.csv").write_text("a")
    lake.commit({1: 1})

    opened = lake.pipeline(commit={"late_data": {"side": {"path": str(late_root)}}})

    with pytest.raises(LateRootUnfit, match="it has files already"):
        load(opened)


def test_proposed_late_rows_wait_for_an_approval(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "propose")

    outcome = next(item for item in publish(opened) if item.partition == day(1))
    assert (outcome.state, lake.ids()[DAY_1]) == ("held", on_time)
    assert outcome.why is not None
    assert outcome.why.reason is Reason.APPROVAL_MISSING
    decide(opened, day(1))
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    check_restored(opened)


def test_rejected_late_rows_stay_set_aside_while_newer_ones_are_proposed(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "propose")
    publish(opened)
    decide(opened, day(1), approved=False)
    assert asides(opened)[2] is Aside.LATE_PROPOSED
    more = lake.commit({1: 1})
    load(opened, interval(3))

    publish(opened)
    proposed = opened.explain(day(1), NOW).proposed
    assert proposed is not None
    assert proposed.rows == 5
    decide(opened, day(1))
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, *more]
    check_restored(opened)
    opened.reopen(day(1), NOW)
    publish(opened)
    decide(opened, day(1))
    publish(opened)
    assert lake.ids()[DAY_1] == [*on_time, 6, 7, *more]
    check_restored(opened)


def test_reopen_proposes_rejected_late_rows_again(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "propose")
    publish(opened)
    decide(opened, day(1), approved=False)
    check_restored(opened)

    opened.reopen(day(1), NOW)
    publish(opened)
    decide(opened, day(1))
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]


def test_rejected_late_rows_may_still_be_approved_as_shown(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "propose")
    publish(opened)
    decide(opened, day(1), approved=False)

    decide(opened, day(1))
    publish(opened)
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    assert asides(opened) == {1: None, 2: None}
    check_restored(opened)


@pytest.mark.on_disk
def test_rejecting_policy_puts_late_rows_into_quarantine(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "reject")

    publish(opened)

    found = opened.explain(day(1), NOW)
    (folder,) = found.quarantined
    assert found.quarantined_by[folder] == {"late": 2}
    assert sorted(pq.read_table(folder)["id"].to_pylist()) == [6, 7]
    assert lake.ids()[DAY_1] == on_time
    assert opened.ledger.partitions.get(day(1)).pending == "none"
    opened.sweep(opened.garbage(NOW + 900 * DAY, timedelta(0)))
    assert sorted(pq.read_table(folder)["id"].to_pylist()) == [6, 7]
    check_restored(opened)


def test_reopened_rows_leave_the_quarantine(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "reject")
    publish(opened)

    opened.reopen(day(1), NOW)
    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    assert opened.explain(day(1), NOW).quarantined == ()
    check_restored(opened)


def test_reopen_of_nothing_is_refused(lake: SmallLake) -> None:
    lake.commit({1: 1})
    opened = lake.pipeline()
    load(opened)
    publish(opened)

    with pytest.raises(NotHeld):
        opened.reopen(day(1), NOW)


def test_late_rows_count_by_default_and_nothing_is_written_of_it(lake: SmallLake) -> None:
    opened, on_time = with_late_rows(lake, "revise")

    publish(opened)

    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
    sealed = list(lake.work.glob("windows/*/*/sealed.json"))
    assert sealed
    assert not [path for path in sealed if "late_data" in path.read_text()]
    with opened.ledger.engine.connect() as connection:
        assert set(connection.scalars(sa.select(contribution.c.aside))) == {None}


@pytest.mark.parametrize(
    "target",
    [
        {"compaction": {"small_file": "1MiB"}},
        {"write": "upsert", "keys": ["id"], "keys_stay": True},
    ],
    ids=["joined", "merged"],
)
def test_every_late_window_of_assembled_files_is_asked_about(
    tmp_path: Path, target: dict[str, Any]
) -> None:
    """PC-L05: a rejection sets all of them aside, however their rows are put together."""
    keys = {"commit": {"trigger": "process-time", "late_data": "propose"}, "target": target}
    lake = SmallLake(tmp_path / "assembled", keys=keys)
    lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    for _ in range(2):
        lake.commit({1: 2})
        load(lake.pipeline())
    pipeline = lake.pipeline()
    (held,) = pipeline.publish_all("cli", NOW)
    proposed = pipeline.ledger.publications.proposed(day(1))
    assert proposed is not None
    assert proposed.verdict is not None
    assert held.state == "held"
    assert "4 late rows of windows 2, 3" in proposed.verdict.checks[0].observed

    decide(pipeline, day(1), approved=False)
    lake.commit({1: 1})
    load(pipeline)
    list(pipeline.publish_all("cli", NOW))
    decide(pipeline, day(1))
    publish(pipeline)

    assert lake.ids() == {"dt=2026-02-01": [1, 2, 7]}


@pytest.mark.parametrize("then", ["revise", "hold", "reject"])
def test_late_rows_wait_for_the_approval_that_their_windows_were_planned_with(
    lake: SmallLake, then: str
) -> None:
    opened, on_time = with_late_rows(lake, "propose")
    publish(opened)
    now = lake.pipeline(commit={"late_data": then})
    now.reopen(day(1), NOW)

    publish(now)

    assert lake.ids()[DAY_1] == on_time
    assert now.ledger.partitions.get(day(1)).pending == "held"
    decide(now, day(1))
    publish(now)
    assert lake.ids()[DAY_1] == [*on_time, 6, 7]
