"""Triggers: the truth tables of partition-commit.md, one step either side of every boundary."""

# ruff: noqa: DTZ001 (partition times are wall clock, and naive for that)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.triggers import Tide, clock_text, evaluate, span_text
from tidegate.config import EventTimeConfig, PipelineConfig
from tidegate.model.partition import DEFAULT_NAME, Partition
from tidegate.model.watermark import Evaluation, Reason

MILLISECOND = timedelta(milliseconds=1)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MADE = {"dt": "day(at)", "hr": "hour(at)"}
PLAIN = {"dt": "dt", "hr": "hr"}
HOURLY = "dt=2020-12-01/hr=10"


def pipeline(partition_by: dict[str, str], zone: str = "UTC", **commit: Any) -> PipelineConfig:
    """Make a pipeline with these partition keys and this `commit`."""
    return PipelineConfig.from_resolved(
        {
            "name": "p",
            "timezone": zone,
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": partition_by},
            "commit": commit,
        }
    )


def flink(delay: str, zone: str = "UTC", form: str = "$dt $hr:00:00") -> PipelineConfig:
    """Make a pipeline that times partitions as Flink does: no interval."""
    return pipeline(PLAIN, zone, delay=delay, partition_time={"pattern": form})


def look(
    config: PipelineConfig,
    path: str,
    watermark: datetime | None = None,
    now: datetime = NOW,
    first_seen: datetime = NOW,
    *,
    idle: bool = False,
) -> Evaluation:
    """Evaluate a partition given by its path."""
    names = tuple(part.split("=")[0] for part in path.split("/") if part)
    return evaluate(
        config,
        Partition.parse(path, names, DEFAULT_NAME),
        first_seen=first_seen,
        tide=Tide(now, watermark, idle),
    )


def utc(text: str) -> datetime:
    """Read an instant written without its `Z`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def at(milliseconds: int) -> datetime:
    """Give a moment of the test clock."""
    return datetime(1970, 1, 1, tzinfo=UTC) + milliseconds * MILLISECOND


@pytest.mark.parametrize(
    ("delay", "clock", "committable"),
    [
        ("0s", 500, True),
        ("0s", 1000, True),
        ("5s", 1000, False),
        ("5s", 5999, False),
        ("5s", 6000, False),
        ("5s", 6001, True),
    ],
)
def test_process_time_is_strictly_after_first_seen_and_delay(
    delay: str, clock: int, committable: bool
) -> None:
    """PC-T30, T31: first seen at 1000 ms."""
    config = pipeline(PLAIN, trigger="process-time", delay=delay)

    found = look(config, HOURLY, now=at(clock), first_seen=at(1000))

    assert found.committable is committable
    assert found.reason is (None if committable else Reason.DELAY_NOT_ELAPSED)


def test_process_time_before_the_delay_says_what_is_missing() -> None:
    config = pipeline(PLAIN, trigger="process-time", delay="1h")

    found = look(config, HOURLY, now=utc("2026-01-01T10:20"), first_seen=utc("2026-01-01T10:00"))

    assert found.due == utc("2026-01-01T11:00")
    assert found.detail == (
        "first seen 2026-01-01 10:00, delay 1 h: due after 2026-01-01 11:00; 40 min missing"
    )


def test_process_time_commits_the_default_partition_too() -> None:
    config = pipeline({"region": "region"}, trigger="process-time")

    assert look(config, "region=__DEFAULT_PARTITION__").committable


@pytest.mark.parametrize("committable", [False, True], ids=["at its boundary", "later"])
def test_partition_without_a_time_waits_longer_than_its_turn_says(committable: bool) -> None:
    config = pipeline({"dt": "day(at)"}, default_partition={"after": "1h"})
    due = NOW + timedelta(hours=1)

    found = look(config, "dt=__DEFAULT_PARTITION__", now=due + committable * MILLISECOND)

    assert (found.committable, found.due) == (committable, due)


BOUNDARIES = [
    pytest.param(flink("0s"), HOURLY, "2020-12-01T10:00", id="T32 no delay"),
    pytest.param(flink("1h"), HOURLY, "2020-12-01T11:00", id="T32 one hour"),
    pytest.param(flink("70min"), HOURLY, "2020-12-01T11:10", id="T32 70 minutes"),
    pytest.param(flink("1h", "Asia/Shanghai"), HOURLY, "2020-12-01T03:00", id="T33"),
    pytest.param(pipeline(MADE), HOURLY, "2020-12-01T11:00", id="T34 no delay"),
    pytest.param(pipeline(MADE, delay="10m"), HOURLY, "2020-12-01T11:10", id="T34 ten minutes"),
    pytest.param(
        pipeline(PLAIN, partition_time={"pattern": "$dt $hr:00:00", "interval": "1 h"}),
        HOURLY,
        "2020-12-01T11:00",
        id="T34 interval given",
    ),
]
for _rule, _path, _flink, _interval in [
    ("T40", "dt=2020-03-08/hr=01", "2020-03-08T07:00", "2020-03-08T07:00"),
    ("T41", "dt=2020-03-08/hr=02", "2020-03-08T08:00", "2020-03-08T07:00"),
    ("T43", "dt=2020-11-01/hr=00", "2020-11-01T05:00", "2020-11-01T05:00"),
    ("T44", "dt=2020-11-01/hr=01", "2020-11-01T06:00", "2020-11-01T07:00"),
]:
    BOUNDARIES += [
        pytest.param(flink("1h", "America/New_York"), _path, _flink, id=f"{_rule} flink"),
        pytest.param(pipeline(MADE, "America/New_York"), _path, _interval, id=f"{_rule} interval"),
    ]
for _rule, _path, _flink, _interval in [
    ("T42", "dt=2020-03-08", "2020-03-09T05:00", "2020-03-09T04:00"),
    ("T45", "dt=2020-11-01", "2020-11-02T04:00", "2020-11-02T05:00"),
]:
    BOUNDARIES += [
        pytest.param(
            pipeline({"dt": "dt"}, "America/New_York", delay="1d"),
            _path,
            _flink,
            id=f"{_rule} flink",
        ),
        pytest.param(
            pipeline({"dt": "day(at)"}, "America/New_York"),
            _path,
            _interval,
            id=f"{_rule} interval",
        ),
    ]


@pytest.mark.parametrize(("config", "path", "last_without"), BOUNDARIES)
def test_partition_time_is_strictly_after_the_boundary(
    config: PipelineConfig, path: str, last_without: str
) -> None:
    """PC-T32 to T34, PC-T40 to T45, PC-V09."""
    before = look(config, path, utc(last_without) - MILLISECOND)
    exactly = look(config, path, utc(last_without))
    after = look(config, path, utc(last_without) + MILLISECOND)

    assert [before.committable, exactly.committable, after.committable] == [False, False, True]
    assert before.reason is exactly.reason is Reason.WATERMARK_BEHIND
    assert after.reason is None
    assert before.due == exactly.due == after.due == utc(last_without)


@pytest.mark.parametrize("config", [flink("0s"), pipeline(MADE)], ids=["flink", "interval"])
def test_partition_time_without_watermark_is_never(config: PipelineConfig) -> None:
    """PC-T35."""
    found = look(config, HOURLY, watermark=None)

    assert not found.committable
    assert found.reason is Reason.WATERMARK_UNDEFINED


@pytest.mark.parametrize("config", [flink("0s"), pipeline(MADE)], ids=["flink", "interval"])
def test_partition_time_at_the_maximum_is_always(config: PipelineConfig) -> None:
    """PC-T35."""
    assert look(config, HOURLY, watermark=datetime.max.replace(tzinfo=UTC)).committable


def test_detail_behind_says_what_stands_where_and_what_is_missing() -> None:
    config = pipeline({"dt": "day(at)"}, "America/New_York")

    found = look(config, "dt=2013-02-12", utc("2013-02-12T16:59"))

    assert found.detail == (
        "watermark 2013-02-12 11:59 America/New_York must pass 2013-02-13 00:00; 12 h 1 min missing"
    )


def test_detail_at_the_boundary_says_that_equality_is_not_enough() -> None:
    found = look(pipeline({"dt": "day(at)"}), "dt=2013-02-12", utc("2013-02-13"))

    assert found.detail.endswith("it stands exactly there, and must be later")


def test_detail_in_a_repeated_hour_names_the_offset() -> None:
    found = look(pipeline(MADE, "America/New_York"), "dt=2020-11-01/hr=01", utc("2020-11-01T06:30"))

    assert found.detail.startswith("watermark 2020-11-01 01:30-0500 America/New_York must pass")


def test_silent_source_whose_watermark_goes_on_is_behind_like_any_other() -> None:
    said = EventTimeConfig(column="at", idle_timeout="1h", when_idle="advance")
    config = pipeline({"dt": "day(at)"}).model_copy(update={"event_time": said})

    found = look(config, "dt=2013-02-12", utc("2013-02-12"), idle=True)

    assert found.reason is Reason.WATERMARK_BEHIND
    assert found.detail.endswith("1 d missing")


def test_silent_source_that_waits_gives_its_own_reason() -> None:
    found = look(pipeline({"dt": "day(at)"}), "dt=2013-02-12", utc("2013-02-12"), idle=True)

    assert found.reason is Reason.ALL_SOURCES_IDLE
    assert "1 d missing" in found.detail


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("dt=__DEFAULT_PARTITION__", Reason.DEFAULT_PARTITION),
        ("dt=someday", Reason.TIME_UNPARSABLE),
    ],
)
def test_partition_without_time_is_not_due_by_time(path: str, reason: Reason) -> None:
    """PC-T16, T17."""
    found = look(pipeline({"dt": "dt"}), path, datetime.max.replace(tzinfo=UTC))

    assert not found.committable
    assert found.reason is reason
    assert found.due is None


@pytest.mark.parametrize("trigger", ["partition-time", "process-time"])
def test_pipeline_without_policies_never_commits(trigger: str) -> None:
    """PC-A01."""
    config = pipeline({"dt": "day(at)"}, trigger=trigger, policies=[])

    found = look(config, "dt=2013-02-12", utc("2020-01-01"))

    assert not found.committable
    assert found.reason is Reason.NO_POLICY


def test_unpartitioned_target_is_committed_after_each_load() -> None:
    """PC-A12."""
    assert look(pipeline({}), "").committable


@given(
    earlier=st.datetimes(datetime(2020, 11, 1), datetime(2020, 11, 3)),
    later=st.datetimes(datetime(2020, 11, 1), datetime(2020, 11, 3)),
)
def test_higher_watermark_never_takes_a_decision_back(earlier: datetime, later: datetime) -> None:
    config = pipeline(MADE, "America/New_York")
    low, high = sorted([earlier.replace(tzinfo=UTC), later.replace(tzinfo=UTC)])

    first = look(config, "dt=2020-11-01/hr=01", low)
    second = look(config, "dt=2020-11-01/hr=01", high)

    assert second.committable or not first.committable


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(hours=12, minutes=1), "12 h 1 min"),
        (timedelta(days=3, minutes=5), "3 d"),
        (timedelta(days=3, hours=5), "3 d 5 h"),
        (timedelta(seconds=45), "45 s"),
        (MILLISECOND, "1 ms"),
        (MILLISECOND + timedelta(microseconds=7), "1 ms 7 µs"),
        (timedelta(microseconds=7), "7 µs"),
        (timedelta(0), "0 s"),
    ],
)
def test_span_text_names_the_two_largest_units(span: timedelta, text: str) -> None:
    assert span_text(span) == text


BERLIN = "Europe/Berlin"
DAY_STARTS, DAY_ENDS = utc("2026-02-01T23:00"), utc("2026-02-02T23:00")
NO_POLICY = "`commit.policies` is empty, so that nothing is ever committed"
BEHIND = "watermark 2026-02-02 23:30 Europe/Berlin must pass 2026-02-03 00:00; 30 min missing"
IDLE = f"{BEHIND}; the source is idle and `event_time.when_idle` says wait"


@pytest.mark.parametrize(
    ("commit", "path", "watermark", "idle", "expected"),
    [
        (
            {"policies": []},
            "dt=2026-02-02",
            None,
            False,
            (False, Reason.NO_POLICY, NO_POLICY, None),
        ),
        (
            {},
            "",
            None,
            False,
            (True, None, "no partition keys: committed after each load", None),
        ),
        (
            {"trigger": "process-time"},
            "dt=2026-02-02",
            None,
            False,
            (True, None, "process time without delay", DAY_STARTS),
        ),
        (
            {"trigger": "process-time", "delay": "1d"},
            "dt=2026-02-02",
            None,
            False,
            (
                True,
                None,
                "first seen 2026-02-02 00:00, delay 1 d: over since 2026-02-03 00:00",
                DAY_ENDS,
            ),
        ),
        (
            {"trigger": "process-time", "delay": "400d"},
            "dt=2026-02-02",
            None,
            False,
            (
                False,
                Reason.DELAY_NOT_ELAPSED,
                "first seen 2026-02-02 00:00, delay 400 d: due after 2027-03-09 00:00; "
                "108 d 11 h missing",
                DAY_STARTS + timedelta(days=400),
            ),
        ),
        (
            {},
            "dt=2026-02-02",
            None,
            False,
            (
                False,
                Reason.WATERMARK_UNDEFINED,
                "no watermark yet: no load has brought an event time; it must pass 2026-02-03 "
                "00:00 Europe/Berlin",
                DAY_ENDS,
            ),
        ),
        (
            {},
            "dt=2026-02-02",
            DAY_ENDS + MILLISECOND,
            False,
            (
                True,
                None,
                "watermark 2026-02-03 00:00:00.001 Europe/Berlin has passed 2026-02-03 00:00",
                DAY_ENDS,
            ),
        ),
        (
            {},
            "dt=2026-02-02",
            DAY_ENDS - timedelta(minutes=30),
            False,
            (False, Reason.WATERMARK_BEHIND, BEHIND, DAY_ENDS),
        ),
        (
            {},
            "dt=2026-02-02",
            DAY_ENDS - timedelta(minutes=30),
            True,
            (False, Reason.ALL_SOURCES_IDLE, IDLE, DAY_ENDS),
        ),
    ],
    ids=[
        "no-policy",
        "no-keys",
        "process-time",
        "delay-over",
        "delay",
        "no-watermark",
        "passed",
        "behind",
        "idle",
    ],
)
def test_evaluation_says_what_was_compared_when_and_what_is_due(
    commit: dict[str, Any],
    path: str,
    watermark: datetime | None,
    idle: bool,
    expected: tuple[bool, Reason | None, str, datetime | None],
) -> None:
    config = pipeline({"dt": "day(at)"} if path else {}, BERLIN, **commit)

    found = look(config, path, watermark, first_seen=DAY_STARTS, idle=idle)

    committable, reason, detail, due = expected
    assert found == Evaluation(committable, reason, detail, NOW, due)


def test_partition_whose_time_is_unknown_says_why() -> None:
    found = look(pipeline({"dt": "day(at)"}), "dt=tomorrow", NOW)

    assert found.reason is Reason.TIME_UNPARSABLE
    assert "tomorrow" in found.detail


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (timedelta(0), "2026-11-20 12:00"),
        (timedelta(seconds=7), "2026-11-20 12:00:07"),
        (timedelta(seconds=7, milliseconds=5), "2026-11-20 12:00:07.005"),
        (timedelta(milliseconds=5), "2026-11-20 12:00:00.005"),
    ],
    ids=["minutes", "seconds", "milliseconds", "milliseconds-of-a-minute"],
)
def test_clock_text_is_as_short_as_is_exact(after: timedelta, text: str) -> None:
    assert clock_text(NOW + after, ZoneInfo("UTC")) == text


@pytest.mark.parametrize("path", ["dt=2020-03-08/hr=01", "dt=2020-11-01/hr=01"])
def test_stored_end_of_a_made_partition_is_the_one_that_is_read(path: str) -> None:
    config = pipeline(MADE, "America/New_York")
    partition = Partition.parse(path, ("dt", "hr"), DEFAULT_NAME)
    _, end = PartitionClock.of(config).bounds(partition)
    tide = Tide(NOW, utc("2020-06-01T00:00"))

    stored = evaluate(config, partition, first_seen=NOW, tide=tide, end=end)

    assert stored == evaluate(config, partition, first_seen=NOW, tide=tide)


def test_stored_end_of_a_partition_is_not_asked_where_a_pattern_names_its_time() -> None:
    config, tide = flink("0s"), Tide(NOW, utc("2020-06-01T00:00"))
    partition = Partition.parse(HOURLY, ("dt", "hr"), DEFAULT_NAME)

    found = evaluate(config, partition, first_seen=NOW, tide=tide, end=utc("2020-01-01T00:00"))

    assert (found.committable, found.due) == (False, utc("2020-12-01T10:00"))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai"])
def test_largest_watermark_passes_every_partition_time(zone: str) -> None:
    """PC-T35, M09."""
    for config in (flink("70min", zone), pipeline(MADE, zone, delay="10m")):
        partition = Partition.parse(HOURLY, ("dt", "hr"), DEFAULT_NAME)

        found = evaluate(config, partition, first_seen=NOW, tide=Tide(NOW, None, is_final=True))

        assert found.committable
        assert found.reason is None


def test_closed_source_leaves_process_time_alone() -> None:
    config = pipeline(PLAIN, trigger="process-time", delay="1h")
    partition = Partition.parse(HOURLY, ("dt", "hr"), DEFAULT_NAME)

    found = evaluate(config, partition, first_seen=NOW, tide=Tide(NOW, None, is_final=True))

    assert found.reason is Reason.DELAY_NOT_ELAPSED
