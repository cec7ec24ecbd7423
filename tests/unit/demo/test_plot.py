from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from tidegate.demo import plot
from tidegate.model.ledger_rows import PartitionState, PipelineState
from tidegate.model.partition import Partition
from tidegate.model.report import PartitionReport, PipelineReport
from tidegate.model.watermark import Evaluation, Reason

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BEHIND = Evaluation(False, Reason.WATERMARK_BEHIND, "13 h missing", NOW)
FAILED = Evaluation(False, Reason.GATE_FAILED, "49 %", NOW)


def partition_report(
    day: date, pending: str, revision: int, why: Evaluation | None = None
) -> PartitionReport:
    state = PartitionState(
        partition=Partition((("dt", day.isoformat()),)),
        start=None,
        end=None,
        first_seen=None,
        revision=revision,
        rows=900 if revision else 0,
        pending=pending,
        why=why,
        owner=None,
        expires=None,
    )
    name = "committed" if pending == "none" else pending
    return PartitionReport(state=state, name=name, why=why, rows_pending=7, windows=())


def pipeline_report(*partitions: PartitionReport) -> PipelineReport:
    pipeline = PipelineState(
        name="flights",
        ledger_id="x",
        target="/t",
        started=True,
        first_start=None,
        checkpoint=None,
        watermark=None,
        watermark_step=None,
        next_sequence=1,
        next_number=1,
        first_fence=0,
        source_identity=None,
    )
    return PipelineReport(pipeline=pipeline, partitions=partitions, windows=(), notes=())


def ending() -> dict[date, PartitionReport]:
    """Give the partitions as the demo leaves them."""
    days = {day: partition_report(day, "none", 1) for day in map(_day, range(5, 12))}
    days[plot.LATE] = partition_report(plot.LATE, "none", 2)
    days[plot.HELD] = partition_report(plot.HELD, "held", 0, FAILED)
    days[plot.WAITING] = partition_report(plot.WAITING, "pending", 0, BEHIND)
    return days


def _day(number: int) -> date:
    return date(2013, 2, number)


def test_demo_is_at_its_end_when_every_day_is_as_told() -> None:
    assert plot.is_at_the_end(pipeline_report(*ending().values()))


def test_demo_without_a_ledger_is_at_its_beginning() -> None:
    assert not plot.is_at_the_end(None)
    assert [day.path for day in plot.days(None)] == [f"dt=2013-02-{n:02d}" for n in range(5, 13)]


@pytest.mark.parametrize(
    ("day", "standing"),
    [
        pytest.param(plot.LATE, ("none", 1, None), id="late-rows-not-out"),
        pytest.param(plot.APPROVED, ("held", 0, FAILED), id="not-approved-yet"),
        pytest.param(plot.HELD, ("pending", 0, None), id="not-checked-yet"),
        pytest.param(plot.WAITING, ("pending", 0, None), id="watermark-passed"),
        pytest.param(_day(5), ("pending", 0, BEHIND), id="waits-where-it-must-not"),
        pytest.param(_day(5), ("pending", 1, None), id="late-rows-of-another-day"),
    ],
)
def test_demo_is_not_at_its_end_while_a_day_is_open(
    day: date, standing: tuple[str, int, Evaluation | None]
) -> None:
    days = ending()
    days[day] = partition_report(day, *standing)

    assert not plot.is_at_the_end(pipeline_report(*days.values()))


@pytest.mark.parametrize("day", [plot.HELD, plot.WAITING])
def test_demo_stays_at_its_end_when_a_person_went_on(day: date) -> None:
    days = ending()
    days[day] = partition_report(day, "none", 1)

    assert plot.is_at_the_end(pipeline_report(*days.values()))


def test_missing_day_is_not_at_its_end() -> None:
    days = ending()
    del days[_day(7)]

    assert not plot.is_at_the_end(pipeline_report(*days.values()))


def test_midnight_is_new_york_time() -> None:
    assert plot.midnight(_day(5)).astimezone(UTC) == datetime(2013, 2, 5, 5, tzinfo=UTC)


def test_rows_alone_do_not_end_a_day() -> None:
    day = plot.days(pipeline_report(replace(partition_report(_day(5), "pending", 0))))[0]

    assert not day.is_at_the_end
