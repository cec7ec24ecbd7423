"""Partition time: values → local time → instants, against java.time and against brute force."""

# ruff: noqa: DTZ001 (partition times are wall clock, and naive for that)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.commit.partition_time import NoPartitionTime, PartitionClock, interval_end
from tidegate.config import PipelineConfig
from tidegate.model.partition import DEFAULT_NAME, Partition
from tidegate.model.partition_value import Interval
from tidegate.model.watermark import Reason

MINUTE = timedelta(minutes=1)
HOUR = Interval(span=timedelta(hours=1))
DAY = Interval(span=timedelta(days=1))
MONTH = Interval(months=1)


def clock(
    partition_by: dict[str, str], zone: str = "UTC", **partition_time: object
) -> PartitionClock:
    """Make the clock of a pipeline with these partition keys."""
    commit = {"partition_time": partition_time} if partition_time else {}
    return PartitionClock.of(
        PipelineConfig.from_resolved(
            {
                "name": "p",
                "timezone": zone,
                "source": {"kind": "files", "path": "/in"},
                "event_time": "at",
                "target": {"path": "/out", "partition_by": partition_by},
                "commit": commit,
            }
        )
    )


def partition(path: str) -> Partition:
    """Read `dt=2020-12-01/hr=10`."""
    names = tuple(part.split("=")[0] for part in path.split("/"))
    return Partition.parse(path, names, DEFAULT_NAME)


def utc(text: str) -> datetime:
    """Read an instant written without its `Z`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("keys", "path", "local", "end"),
    [
        ({"dt": "day(at)"}, "dt=2013-02-05", "2013-02-05T00:00", "2013-02-06T00:00"),
        ({"hr": "hour(at)"}, "hr=2013-02-05T07", "2013-02-05T07:00", "2013-02-05T08:00"),
        ({"mo": "month(at)"}, "mo=2013-12", "2013-12-01T00:00", "2014-01-01T00:00"),
        (
            {"dt": "day(at)", "hr": "hour(at)", "region": "region"},
            "dt=2013-02-05/hr=23/region=eu",
            "2013-02-05T23:00",
            "2013-02-06T00:00",
        ),
        (
            {"mo": "month(at)", "dt": "day(at)"},
            "mo=2013-02/dt=2013-02-28",
            "2013-02-28T00:00",
            "2013-03-01T00:00",
        ),
        (
            {"hr": "hour(at)", "mo": "month(at)"},
            "hr=2013-02-05T07/mo=2013-02",
            "2013-02-05T07:00",
            "2013-02-05T08:00",
        ),
    ],
    ids=["day", "hour alone", "month", "hour of a day", "day in a month", "hour and month"],
)
def test_time_of_made_values_is_read_back(
    keys: dict[str, str], path: str, local: str, end: str
) -> None:
    when = clock(keys).time(partition(path))

    assert when.local == datetime.fromisoformat(local)
    assert when.start == utc(local)
    assert when.end == utc(end)


def test_time_of_keys_from_two_columns_follows_the_event_time() -> None:
    keys = {"loaded": "day(loaded_at)", "dt": "day(at)"}

    when = clock(keys).time(partition("loaded=2020-01-01/dt=2013-02-05"))

    assert when.local == datetime(2013, 2, 5)


@pytest.mark.parametrize(
    ("path", "said", "local"),
    [
        ("dt=2020-12-01/hr=11", {}, "2020-12-01T00:00"),
        (
            "day=2020-12-01/hour=11/minute=11",
            {"pattern": "$day $hour:$minute:00"},
            "2020-12-01T11:11",
        ),
        ("d=7/day=2020-12-01", {"pattern": "$day"}, "2020-12-01T00:00"),
        ("a=$b/b=2020-12-01", {"pattern": "$b"}, "2020-12-01T00:00"),
        ("dt=202012", {"pattern": "$dt01", "formatter": "yyyyMMdd"}, "2020-12-01T00:00"),
        ("dt=20201201", {"formatter": "yyyyMMdd"}, "2020-12-01T00:00"),
        (
            "ts=2020-12-01T11%3A00%3A00",
            {"formatter": "yyyy-MM-dd'T'HH:mm:ss"},
            "2020-12-01T11:00",
        ),
    ],
    ids=[
        "first value",
        "pattern",
        "longest key first",
        "one pass",
        "months",
        "formatter",
        "timestamp",
    ],
)
def test_time_of_other_values_is_read_by_the_pattern(
    path: str, said: dict[str, str], local: str
) -> None:
    keys = {name: name for name, _ in partition(path).values}

    when = clock(keys, **said).time(partition(path))

    assert when.local == datetime.fromisoformat(local)
    assert when.end is None
    assert when.boundary == utc(local)


def test_substituted_text_is_not_scanned_again() -> None:
    """PC-T11: Flink would read `$b` inside the value of `a`."""
    with pytest.raises(NoPartitionTime, match=r"'\$b' is not of the form"):
        clock({"a": "a", "b": "b"}, pattern="$a").time(partition("a=$b/b=2020-12-01"))


@pytest.mark.parametrize(
    ("keys", "path", "reason"),
    [
        ({"dt": "day(at)"}, "dt=__DEFAULT_PARTITION__", Reason.DEFAULT_PARTITION),
        (
            {"dt": "day(at)", "hr": "hour(at)"},
            "dt=2020-12-01/hr=__DEFAULT_PARTITION__",
            Reason.DEFAULT_PARTITION,
        ),
        ({"dt": "dt"}, "dt=__DEFAULT_PARTITION__", Reason.DEFAULT_PARTITION),
        ({"dt": "dt"}, "dt=yesterday", Reason.TIME_UNPARSABLE),
        ({"dt": "dt"}, "dt=2020-02-30", Reason.TIME_UNPARSABLE),
        ({"dt": "day(at)"}, "dt=2020-2-3", Reason.TIME_UNPARSABLE),
        ({"dt": "day(at)"}, "dt=9999-12-31", Reason.TIME_UNPARSABLE),
        ({"dt": "day(at)"}, "dt=0001-01-01", Reason.TIME_UNPARSABLE),
        ({"mo": "month(at)"}, "mo=9999-12", Reason.TIME_UNPARSABLE),
    ],
    ids=[
        "no day",
        "no hour",
        "no value",
        "no time",
        "no real date",
        "not as written",
        "last day of the calendar",
        "first day of the calendar",
        "last month of the calendar",
    ],
)
def test_time_of_values_without_one_says_why(
    keys: dict[str, str], path: str, reason: Reason
) -> None:
    made = clock(keys, zone="Asia/Shanghai")

    with pytest.raises(NoPartitionTime) as refused:
        made.time(partition(path))

    assert refused.value.reason is reason
    assert path.partition("=")[0] in refused.value.detail
    assert made.bounds(partition(path)) == (None, None)


def test_time_of_a_missing_value_that_names_no_time_is_still_known() -> None:
    keys = {"dt": "day(at)", "region": "region"}

    bounds = clock(keys).bounds(partition("dt=2013-02-05/region=__DEFAULT_PARTITION__"))

    assert bounds == (utc("2013-02-05"), utc("2013-02-06"))


def test_time_of_an_overflowing_value_when_lenient_rolls_on() -> None:
    when = clock({"dt": "dt"}, lenient=True).time(partition("dt=2020-02-30"))

    assert when.local == datetime(2020, 3, 1)


@pytest.mark.parametrize(
    ("local", "start"),
    [
        ("2020-03-08T02:30", "2020-03-08T07:30"),
        ("2020-11-01T01:00", "2020-11-01T05:00"),
        ("2020-11-01T02:00", "2020-11-01T07:00"),
    ],
    ids=["gap is shifted forward", "first of the two", "after the repeated hour"],
)
def test_start_at_a_clock_change_is_the_one_of_t19(local: str, start: str) -> None:
    made = clock({"ts": "ts"}, zone="America/New_York", formatter="yyyy-MM-dd'T'HH:mm")

    when = made.time(partition(f"ts={local.replace(':', '%3A')}"))

    assert when.start == utc(start)


@pytest.mark.parametrize(
    ("local", "interval", "zone", "end"),
    [
        ("2020-03-08T01:00", HOUR, "America/New_York", "2020-03-08T07:00"),
        ("2020-03-08T02:00", HOUR, "America/New_York", "2020-03-08T07:00"),
        ("2020-03-08T00:00", DAY, "America/New_York", "2020-03-09T04:00"),
        ("2020-11-01T00:00", HOUR, "America/New_York", "2020-11-01T05:00"),
        ("2020-11-01T01:00", HOUR, "America/New_York", "2020-11-01T07:00"),
        ("2020-11-01T00:00", DAY, "America/New_York", "2020-11-02T05:00"),
        ("2020-10-31T00:00", DAY, "Atlantic/Azores", "2020-11-01T01:00"),
        ("2011-12-30T00:00", DAY, "Pacific/Apia", "2011-12-30T10:00"),
        ("2011-12-29T00:00", DAY, "Pacific/Apia", "2011-12-30T10:00"),
        ("2020-10-01T00:00", MONTH, "Europe/Berlin", "2020-10-31T23:00"),
        ("2020-04-05T01:30", HOUR, "Australia/Lord_Howe", "2020-04-04T16:00"),
        ("2020-12-31T23:00", HOUR, "Asia/Shanghai", "2020-12-31T16:00"),
    ],
    ids=[
        "T40",
        "T41 hour in the gap",
        "T42 day of 23 hours",
        "T43",
        "T44 repeated hour",
        "T45 day of 25 hours",
        "day before a change",
        "a day that was skipped",
        "the day before it",
        "month of a change",
        "half an hour repeated",
        "no change",
    ],
)
def test_interval_end_is_the_one_of_t20(
    local: str, interval: Interval, zone: str, end: str
) -> None:
    """PC-T20, and its cases PC-T40 to T45."""
    found = interval_end(datetime.fromisoformat(local), interval, ZoneInfo(zone))

    assert found == utc(end)


ZONES = st.sampled_from(
    [
        "America/New_York",
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
        "America/St_Johns",
        "Africa/Casablanca",
        "Asia/Pyongyang",
        "UTC",
    ]
)


@given(
    zone=ZONES,
    start=st.datetimes(datetime(1990, 1, 1), datetime(2036, 1, 1)).map(
        lambda moment: moment.replace(second=0, microsecond=0, minute=moment.minute // 30 * 30)
    ),
    length=st.sampled_from([30, 60, 120, 360, 1440, 2880]),
)
@example(zone="America/New_York", start=datetime(2020, 3, 8, 2), length=60)
@example(zone="Europe/Berlin", start=datetime(2020, 10, 25, 2, 30), length=30)
@example(zone="Pacific/Apia", start=datetime(2011, 12, 30, 6), length=360)
def test_interval_end_equals_the_last_minute_that_shows_the_interval(
    zone: str, start: datetime, length: int
) -> None:
    where = ZoneInfo(zone)
    stop = start + length * MINUTE
    first = start.replace(tzinfo=UTC) - timedelta(hours=36)
    minutes = [first + step * 15 * MINUTE for step in range(4 * 72 + length // 15)]
    shown = [(minute, minute.astimezone(where).replace(tzinfo=None)) for minute in minutes]

    end = interval_end(start, Interval(span=length * MINUTE), where)

    inside = [minute for minute, local in shown if start <= local < stop]
    if inside:
        assert end == inside[-1] + 15 * MINUTE
    else:
        assert end == next(minute for minute, local in shown if local >= stop)


@given(
    zone=ZONES,
    day=st.dates(datetime(1990, 1, 1).date(), datetime(2036, 1, 1).date()),
    pattern=st.sampled_from([({"dt": "day(at)"}, "%Y-%m-%d"), ({"hr": "hour(at)"}, "%Y-%m-%dT%H")]),
    seconds=st.integers(0, 86_399),
)
def test_every_instant_lies_before_the_end_of_its_partition(
    zone: str, day: datetime, pattern: tuple[dict[str, str], str], seconds: int
) -> None:
    """No row may come for a partition after its end: that is what the end is for."""
    keys, form = pattern
    instant = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=seconds)
    value = instant.astimezone(ZoneInfo(zone)).strftime(form)

    when = clock(keys, zone=zone).time(Partition(((next(iter(keys)), value),)))

    assert when.end is not None
    assert when.start <= instant < when.end
