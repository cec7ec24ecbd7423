"""Partition values written from a time are read back as that time (PC-C04, T10)."""

# ruff: noqa: DTZ001 (partition times are wall clock, and naive for that)

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.commit.partition_time import PartitionClock
from tidegate.config import PipelineConfig
from tidegate.config.expected_values import ExpectedValues, NotWritable
from tidegate.config.time_format import TimeFormat
from tidegate.model.partition import Partition


def pipeline(keys: dict[str, str], **said: Any) -> PipelineConfig:
    commit = {"partition_time": said} if said else {}
    return PipelineConfig.from_resolved(
        {
            "name": "orders",
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": keys},
            "commit": commit,
        }
    )


def writer(config: PipelineConfig) -> ExpectedValues:
    return ExpectedValues.of(config.target.partition_by, "at", config.commit.partition_time)


PLAIN = {"dt": "dt", "hr": "hr"}
CASES = [
    pipeline({"dt": "day(at)", "hr": "hour(at)"}),
    pipeline({"hr": "hour(at)"}),
    pipeline(PLAIN, pattern="$dt $hr:00:00", interval="1h"),
    pipeline(PLAIN, pattern="$hr|$dt", formatter="HH'|'yyyyMMdd", interval="1h"),
    pipeline({"t": "t"}, interval="1h"),
    pipeline({"my-day": "d", "h": "h"}, pattern="$my-day $h:00:00", interval="1h"),
    pipeline({"t": "t"}, formatter="yyyy-MM-dd'T'HH:mm:ss.SSS", interval="1h"),
    pipeline({"d": "d", "day": "day"}, pattern="$day-$d", formatter="yyyyMM-dd-HH", interval="1h"),
]


@pytest.mark.parametrize("config", CASES, ids=range(len(CASES)))
@given(hours=st.integers(0, 24 * 3650))
def test_written_values_are_read_back(config: PipelineConfig, hours: int) -> None:
    local = datetime.fromtimestamp(hours * 3600 + 946684800).replace(minute=0, second=0)  # noqa: DTZ006
    values = writer(config).at(local)

    partition = Partition(tuple((key.name, values[key.name]) for key in config.target.partition_by))
    assert PartitionClock.of(config).time(partition).local == local
    assert writer(config).begins(local)


def test_time_that_no_value_names_begins_nothing() -> None:
    config = pipeline({"t": "t"}, formatter="yyyyMMdd", interval="1d")

    assert not writer(config).begins(datetime(2026, 1, 1, 5))
    with pytest.raises(ValueError, match="no partition value names"):
        writer(config).at(datetime(2026, 1, 1, 5))


@pytest.mark.parametrize(
    ("said", "key"),
    [({}, "partition_time.interval"), ({"pattern": "$dt"}, "partition_time.interval"),
     ({"class": "a:B", "interval": "1d"}, "partition_time.class")],
)  # fmt: skip
def test_values_that_do_not_follow_from_a_time_are_refused(said: dict[str, Any], key: str) -> None:
    with pytest.raises(NotWritable) as refused:
        writer(pipeline({"dt": "dt"}, **said))

    assert refused.value.key == key


@given(st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31)))
def test_formats_write_what_they_read(local: datetime) -> None:
    form = TimeFormat.compile("yy/MM/dd HH:mm:ss.SSSSSS")

    assert form.read(form.write(local)) == local
