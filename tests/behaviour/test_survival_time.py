"""Partitions of a quiet source, and triggers by the clock, across runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from small_lake import NOW, SCHEMA, SmallLake, day, load, publish
from tidegate.cli.app import app
from tidegate.cli.explain_view import explanation
from tidegate.cli.status_view import partition_table, pipeline_facts
from tidegate.ledger.pipelines import Pipelines
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.run import PublishOutcome

HOUR = timedelta(hours=1)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def reasons(outcomes: list[PublishOutcome]) -> list[Reason | None]:
    return [item.why.reason if item.why else None for item in outcomes]


def test_quiet_source_that_advances_publishes_its_last_day(lake: SmallLake) -> None:
    lake.keys = {"event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"}}
    ids = lake.commit({1: 3})
    pipeline = lake.pipeline()
    load(pipeline)
    assert reasons(publish(pipeline)) == [Reason.WATERMARK_BEHIND]

    early = load(pipeline, now=NOW + HOUR)
    late = load(pipeline, now=NOW + 2 * HOUR)
    publish(pipeline, now=NOW + 2 * HOUR)

    assert early.watermark is not None
    assert early.watermark < NOW - timedelta(days=30)
    assert (late.windows, late.watermark) == ((), NOW)
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_load_that_only_moves_the_watermark_says_so_and_what_to_type(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.keys = {"event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"}}
    ids = lake.commit({1: 3})
    load(lake.pipeline(), now=datetime.now(UTC) - 3 * HOUR)

    idle = CliRunner().invoke(app, ["load", "orders"])
    again = CliRunner().invoke(app, ["load", "orders"])

    assert (idle.exit_code, again.exit_code) == (3, 3)
    assert "The source is idle, which moved the watermark to" in idle.stdout
    (line,) = re.findall("Next: tidegate (.*)", idle.stdout)
    assert CliRunner().invoke(app, line.split()).exit_code == 0
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_source_whose_rows_are_all_put_aside_is_not_quiet(lake: SmallLake) -> None:
    lake.keys = {
        "event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"},
        "rows": [{"name": "small", "where": "amount < 50", "on_failure": "quarantine"}],
    }
    lake.commit({1: 2})
    before = load(lake.pipeline()).watermark
    lake.commit({1: 2}, amount=100)

    after = load(lake.pipeline(), now=NOW + 3 * HOUR)

    assert after.summary.rows_quarantined == 2
    assert after.watermark == before
    assert lake.pipeline().ledger.pipeline.get().watermark_step.last_data_at == NOW + 3 * HOUR


def test_quiet_source_that_waits_publishes_nothing_and_says_why(lake: SmallLake) -> None:
    lake.keys = {"event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "wait"}}
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    before = load(pipeline).watermark

    after = load(pipeline, now=NOW + 5 * HOUR).watermark

    assert after == before
    assert reasons(publish(pipeline, now=NOW + 5 * HOUR)) == [Reason.ALL_SOURCES_IDLE]
    assert lake.ids() == {}


def test_watermark_of_a_quiet_source_never_goes_back_when_old_rows_come(lake: SmallLake) -> None:
    lake.keys = {"event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"}}
    ids = lake.commit({1: 3})
    pipeline = lake.pipeline()
    load(pipeline)
    load(pipeline, now=NOW + 2 * HOUR)
    publish(pipeline, now=NOW + 2 * HOUR)
    ids += lake.commit({1: 2})

    announced = load(pipeline, now=NOW + 3 * HOUR)
    publish(pipeline, now=NOW + 3 * HOUR)

    assert announced.watermark == NOW
    assert announced.summary.rows_late == 2
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_process_time_with_delay_counts_from_the_first_uncommitted_rows(lake: SmallLake) -> None:
    lake.keys = {"commit": {"trigger": "process-time", "delay": "2h"}}
    ids = lake.commit({1: 3})
    pipeline = lake.pipeline()
    load(pipeline)
    ids += lake.commit({1: 1})
    load(pipeline, now=NOW + HOUR)

    at_the_boundary = publish(lake.pipeline(), now=NOW + 2 * HOUR)
    behind_it = publish(lake.pipeline(), now=NOW + 2 * HOUR + timedelta(milliseconds=1))

    assert reasons(at_the_boundary) == [Reason.DELAY_NOT_ELAPSED]
    assert [item.state for item in behind_it] == ["committed"]
    assert lake.ids() == {"dt=2026-02-01": ids}


def test_process_time_after_a_commit_begins_anew_with_the_next_rows(lake: SmallLake) -> None:
    lake.keys = {"commit": {"trigger": "process-time", "delay": "2h"}}
    lake.commit({1: 3})
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline, now=NOW + 3 * HOUR)
    lake.commit({1: 1})
    load(pipeline, now=NOW + 4 * HOUR)

    assert reasons(publish(pipeline, now=NOW + 5 * HOUR)) == [Reason.DELAY_NOT_ELAPSED]
    publish(pipeline, now=NOW + 7 * HOUR)
    assert pipeline.ledger.partitions.get(day(1)).revision == 2


def test_idle_watermark_that_a_load_overtakes_is_worked_out_anew(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.keys = {"event_time": {"column": "at", "idle_timeout": "2h", "when_idle": "advance"}}
    lake.commit({1: 1, 2: 1})
    load(lake.pipeline())
    now = NOW + 5 * HOUR
    advance = Pipelines.advance_watermark
    overtook: list[PipelineState] = []

    def overtaken(*arguments: Any) -> Any:
        if not overtook:
            lake.commit({3: 1})
            load(lake.pipeline(), now=now)
            overtook.append(lake.pipeline().ledger.pipeline.get())
        return advance(*arguments)

    monkeypatch.setattr(Pipelines, "advance_watermark", overtaken)

    announced = load(lake.pipeline(), now=now)

    assert overtook[0].watermark == announced.watermark
    state = lake.pipeline().ledger.pipeline.get()
    assert state.watermark_step == overtook[0].watermark_step
    assert load(lake.pipeline(), now=now + 2 * HOUR).watermark == now


def append(lake: SmallLake, number: int, at: list[datetime]) -> None:
    rows = pa.table({"id": [number], "at": at, "amount": [1]}, SCHEMA)
    lake.table.append(rows, snapshot_properties={"known-at": NOW.isoformat()})


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_rows_at_the_ends_of_the_calendar_stop_no_other_partition(
    lake: SmallLake, zone: str
) -> None:
    lake.keys = {"timezone": zone, "commit": {"delay": "3d"}}
    ids = lake.commit({1: 2, 20: 1})
    for number, year in enumerate([(1, 1, 1), (9999, 12, 28), (9999, 12, 31)], 901):
        at = [datetime(*year, 12, tzinfo=UTC)]
        append(lake, number, at)
    load(lake.pipeline())

    publish(lake.pipeline())
    report = lake.pipeline().status(NOW)

    assert {*ids[:2]} <= {number for found in lake.ids().values() for number in found}
    assert report is not None
    assert "dt=0001-01-01" in {str(item.state.partition) for item in report.partitions}
    assert partition_table(report.partitions).row_count == len(report.partitions) == 5
    assert pipeline_facts(report, zone).row_count
    for item in report.partitions:
        found = lake.pipeline().explain(item.state.partition, NOW)
        assert explanation(found, None, zone).renderables


def test_window_of_the_calendars_first_day_only_is_loaded(lake: SmallLake) -> None:
    lake.keys = {"event_time": {"column": "at", "lateness": "5m"}}
    append(lake, 1, [datetime(1, 1, 1, tzinfo=UTC)])

    announced = load(lake.pipeline())

    assert (announced.windows, announced.watermark) == ((1,), None)
