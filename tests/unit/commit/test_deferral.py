"""Which part files are only sent: the reasons to stage them, and the age of an upload."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from small_lake import merged
from tidegate.commit.deferral import copied_because, deferrable, ways_of_files
from tidegate.config import PipelineConfig
from tidegate.model.partition import DEFAULT_NAME, Partition

END = datetime(2026, 11, 21, tzinfo=UTC)
"""Of the day of `DAY`."""
DAY = Partition.parse("dt=2026-11-20", ("dt",), DEFAULT_NAME)
SECOND = timedelta(seconds=1)
PLAIN = {"partition_by": {"dt": "dt"}}
DAILY = {"partition_by": {"dt": "day(at)"}}


def pipeline(**keys: Any) -> PipelineConfig:
    usual = {
        "name": "p",
        "source": {"kind": "files", "path": "/in"},
        "event_time": "at",
        "target": {"path": "s3://lake/out", **DAILY},
    }
    return PipelineConfig.from_resolved(merged(usual, keys))


def can_be(config: PipelineConfig, now: datetime, partition: Partition = DAY) -> bool:
    found = deferrable(config, now)
    assert found is not None
    return found(partition)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"target": {"path": "/out"}}, "not the address of a store"),
        ({"target": {"path": "${env:OUT}", "work": "${env:WORK}"}}, "not the address of a store"),
        ({"target": {"multipart_max_age": "0s"}}, "multipart_max_age"),
        ({"target": {"layout": "revisions"}}, "names directories later"),
        ({"target": {"write": "upsert", "keys": ["id"], "keys_stay": True}}, "merges them by key"),
        ({"target": {"compaction": {"small_file": "1MiB"}}}, "joins them"),
        ({"gate": {"suite": "/suite.json"}}, "the gate reads them"),
        ({"commit": {"policies": []}}, "wait for a command"),
        ({"commit": {"late_data": "reject"}}, "late rows"),
        ({"commit": {"late_data": {"hold": {"rows": 5}}}}, "late rows"),
        ({"commit": {"require": ["trigger", "approval"]}}, "a person approves"),
        ({"commit": {"trigger": "process-time", "delay": "1d"}}, "`commit.delay`"),
        ({"rows": [{"name": "sane", "where": "a > 0", "on_failure": "hold"}]}, "a row rule"),
        ({"commit": {"partition_time": {"class": "times:Times"}}, "target": PLAIN}, "a class"),
    ],
)
def test_files_are_staged_that_somebody_needs_before_the_commit(
    keys: dict[str, Any], said: str
) -> None:
    config = pipeline(**keys)

    assert said in (copied_because(config) or "")
    assert deferrable(config, END) is None


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"target": {"write": "overwrite"}},
        {"commit": {"trigger": "process-time", "delay": "23h"}},
        {"rows": [{"name": "sane", "where": "a > 0"}]},
    ],
)
def test_files_that_nobody_needs_before_are_sent(keys: dict[str, Any]) -> None:
    config = pipeline(**keys)

    assert copied_because(config) is None
    assert can_be(config, END)
    assert "completed by the commit" in ways_of_files(config)["part files"]


@pytest.mark.parametrize("wait", [{"commit": {"delay": "2h"}}, {"event_time": {"lateness": "2h"}}])
def test_partition_is_staged_that_ends_as_late_as_its_upload_expires(wait: dict[str, Any]) -> None:
    keys = {"event_time": {"column": "at"}, "target": {"multipart_max_age": "12h"}}
    config = pipeline(**merged(keys, wait))
    latest = END + timedelta(hours=2) - timedelta(hours=12)

    assert can_be(config, latest + SECOND)
    assert not can_be(config, latest)
    # Late rows of a day that is over are committed at once.
    assert can_be(config, END + timedelta(days=300))


def test_partition_whose_time_is_not_known_is_staged() -> None:
    unnamed = Partition((("dt", None),), DEFAULT_NAME)

    assert not can_be(pipeline(), END, unnamed)
    assert can_be(pipeline(commit={"trigger": "process-time"}), END, unnamed)
    assert can_be(pipeline(target={"partition_by": None}), END, Partition(()))


def test_ways_are_told_only_where_they_differ_from_a_disk() -> None:
    disk = {"path": "/out"}

    assert ways_of_files(pipeline(target=disk)) == {}
    assert list(ways_of_files(pipeline(target={**disk, "layout": "revisions"}))) == ["layout"]


def test_partition_that_ends_where_no_time_can_be_told_is_staged() -> None:
    last = Partition.parse("dt=9999-12-31", ("dt",), DEFAULT_NAME)
    weeks_before = Partition.parse("dt=9999-12-01", ("dt",), DEFAULT_NAME)

    assert not can_be(pipeline(), END, last)
    assert not can_be(pipeline(commit={"delay": "60d"}), END, weeks_before)
