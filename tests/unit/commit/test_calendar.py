"""Calendars: each partition once, none before its end, none that the clock skips (PC-C04)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.commit.calendar import Calendar
from tidegate.commit.triggers import Tide, evaluate
from tidegate.config import PipelineConfig
from tidegate.model.partition import Partition

HOURS = {"dt": "day(at)", "hr": "hour(at)"}
FAR = datetime(2030, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def pipeline(
    partition_by: dict[str, str], zone: str = "UTC", /, commit: dict[str, Any] | None = None,
    **expected: Any,
) -> PipelineConfig:  # fmt: skip
    return PipelineConfig.from_resolved(
        {
            "name": "orders",
            "timezone": zone,
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": partition_by},
            "commit": {**(commit or {}), "expected": expected},
        }
    )


def calendar(*given: Any, **expected: Any) -> Calendar:
    made = Calendar.of(pipeline(*given, **expected))
    assert made is not None
    return made


def paths(found: Calendar, watermark: datetime, after: int = 0) -> list[str]:
    due = found.due(after, watermark)
    return [item.partition.path for _, partitions in due for item in partitions]


def test_day_is_due_once_the_watermark_is_later_than_its_end() -> None:
    days = calendar({"dt": "day(at)"}, start="2026-02-01")
    end = datetime(2026, 2, 2, tzinfo=UTC)

    assert paths(days, end) == []
    assert paths(days, end + TICK) == ["dt=2026-02-01"]


def test_delay_moves_the_end() -> None:
    days = calendar({"dt": "day(at)"}, commit={"delay": "1h"}, start="2026-02-01")
    end = datetime(2026, 2, 2, 1, tzinfo=UTC)

    assert paths(days, end) == []
    assert paths(days, end + TICK) == ["dt=2026-02-01"]


def test_end_is_not_expected() -> None:
    days = calendar({"dt": "day(at)"}, start="2026-02-01", end="2026-02-03")

    assert paths(days, FAR) == ["dt=2026-02-01", "dt=2026-02-02"]
    assert paths(days, datetime.max.replace(tzinfo=UTC)) == ["dt=2026-02-01", "dt=2026-02-02"]


def test_months_are_counted_from_the_start() -> None:
    months = calendar({"m": "month(at)"}, start="2025-12-01", end="2026-04-01")

    assert paths(months, FAR) == ["m=2025-12", "m=2026-01", "m=2026-02", "m=2026-03"]


def test_other_keys_take_every_combination_in_the_order_of_the_path() -> None:
    days = calendar(
        {"region": "region", "dt": "day(at)", "shop": "shop"},
        start="2026-02-01", end="2026-02-02", values={"shop": [1], "region": ["eu", "us"]},
    )  # fmt: skip

    assert paths(days, FAR) == [
        "region=eu/dt=2026-02-01/shop=1",
        "region=us/dt=2026-02-01/shop=1",
    ]


def test_hour_that_the_clock_skips_is_not_expected_and_a_repeated_one_is_once() -> None:
    skipped = calendar(HOURS, "America/New_York", start="2020-03-08", end="2020-03-09")
    repeated = calendar(HOURS, "America/New_York", start="2020-11-01", end="2020-11-02")

    assert len(paths(skipped, FAR)) == 23
    assert "dt=2020-03-08/hr=02" not in paths(skipped, FAR)
    assert len(paths(repeated, FAR)) == len(set(paths(repeated, FAR))) == 24


def test_values_of_a_pattern_are_written_as_they_are_read() -> None:
    said = {"partition_time": {"pattern": "$d $h:00:00", "interval": "1h"}}
    hours = calendar({"d": "d", "h": "h"}, commit=said, start="2026-02-01T22:00",
                     end="2026-02-02T01:00")  # fmt: skip

    assert paths(hours, FAR) == ["d=2026-02-01/h=22", "d=2026-02-01/h=23", "d=2026-02-02/h=00"]


@given(
    st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"]),
    st.lists(st.integers(0, 24 * 400), min_size=1, max_size=4),
)
def test_rounds_join_without_gap_and_agree_with_the_trigger(zone: str, hours: list[int]) -> None:
    """What is due by the calendar is what the trigger would commit, and no hour besides."""
    config = pipeline(HOURS, zone, start="2018-10-20")
    found = Calendar.of(config)
    assert found is not None
    begin, known, seen = datetime(2018, 10, 20, tzinfo=UTC), 0, list[str]()
    marks = sorted(begin + timedelta(hours=hour, minutes=17) for hour in hours)[:4]
    for mark in marks:
        for reached, partitions in found.due(known, min(mark, begin + timedelta(days=20))):
            known = reached
            seen += [item.partition.path for item in partitions]

    last = min(marks[-1], begin + timedelta(days=20))
    assert seen == paths(found, last)
    assert len(seen) == len(set(seen))
    tide = Tide(FAR, last)
    for path in seen[-3:]:
        partition = Partition.parse(path, ("dt", "hr"), "none")
        assert evaluate(config, partition, first_seen=FAR, tide=tide).committable
        assert found.expects(partition)
        assert found.has_passed(partition, known)
        assert not found.has_passed(partition, 0)


@pytest.mark.parametrize(
    "path",
    ["dt=2026-01-31/region=eu", "dt=2026-03-01/region=eu", "dt=2026-02-01/region=asia",
     "dt=__DEFAULT_PARTITION__/region=eu"],
)  # fmt: skip
def test_partition_outside_is_not_expected(path: str) -> None:
    days = calendar({"dt": "day(at)", "region": "region"}, start="2026-02-01", end="2026-03-01",
                    values={"region": "eu"})  # fmt: skip

    assert not days.expects(Partition.parse(path, ("dt", "region"), "__DEFAULT_PARTITION__"))


def test_calendar_that_says_something_else_is_another_one() -> None:
    one = calendar({"dt": "day(at)", "region": "region"}, start="2026-02-01",
                   values={"region": ["eu", "us"]})  # fmt: skip
    same = calendar({"dt": "day(at)", "region": "region"}, start="2026-02-01",
                    values={"region": ["us", "eu"]}, end="2026-03-01")  # fmt: skip
    other = calendar({"dt": "day(at)", "region": "region"}, start="2026-02-01",
                     values={"region": ["eu"]})  # fmt: skip

    assert one.digest == same.digest != other.digest


def test_pipeline_without_a_calendar_expects_nothing() -> None:
    config = pipeline({"dt": "day(at)"}, start="2026-02-01")

    assert Calendar.of(config.model_copy(update={"commit": type(config.commit)()})) is None


def test_calendar_begins_anew_where_its_partitions_are_others() -> None:
    regions = {"values": {"region": ["eu"]}}
    by_day = {"dt": "day(at)", "region": "region"}
    by_region = {"region": "region", "dt": "day(at)"}
    found = [
        calendar(by_day, start="2026-02-01", **regions),
        calendar(by_region, start="2026-02-01", **regions),
        calendar(by_day, start="2026-02-02", **regions),
        calendar(by_day, start="2026-02-01", values={"region": ["us"]}),
        calendar({**HOURS, "region": "region"}, start="2026-02-01", **regions),
    ]

    assert len({each.digest for each in found}) == len(found)
