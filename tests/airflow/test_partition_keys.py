from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.serialization.decoders import decode_partition_mapper
from airflow.serialization.encoders import encode_partition_mapper
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import PipelineConfig
from tidegate.model.partition import DEFAULT_NAME, Partition
from tidegate.target.partitioning import Partitioning
from tidegate_airflow.assets import (
    example_key,
    mappable_keys,
    partition_mapper,
    published_asset,
    read_partition,
)

if TYPE_CHECKING:
    from airflow.partition_mappers.base import PartitionMapper

pytestmark = pytest.mark.airflow


def _config(
    partition_by: dict[str, str], timezone: str = "America/New_York", **target: str
) -> PipelineConfig:
    return PipelineConfig.model_validate(
        {
            "name": "orders",
            "timezone": timezone,
            "source": {"kind": "iceberg", "metadata": "/lake/raw/orders"},
            "event_time": "at",
            "target": {"path": "/lake/orders", "partition_by": partition_by, **target},
        }
    )


def _scheduler_mapper(config: PipelineConfig) -> PartitionMapper:
    """Give the mapper as the scheduler gets it: out of the serialized DAG."""
    return decode_partition_mapper(encode_partition_mapper(partition_mapper(config)))


DAILY = _config({"dt": "day(at)"})
BY_HOUR = _config({"dt": "day(at)", "hr": "hour(at)", "region": "region"})
HOURLY = _config({"hour": "hour(at)"})
MONTHLY = _config({"region": "region", "month": "month(at)"})
NAMED = _config({"region": "region", "day": "day(at)"}, default_partition_name="none given")
BY_REGION = _config({"region": "region"})
WHOLE = _config({})

EXAMPLES = [
    pytest.param(DAILY, "dt=2013-02-05", "2013-02-05", "2013-02-05T05:00:00+00:00", id="day"),
    pytest.param(
        BY_HOUR,
        "dt=2013-02-05/hr=07/region=eu",
        "2013-02-05~07~eu",
        "2013-02-05T05:00:00+00:00",
        id="day-hour-value",
    ),
    pytest.param(
        HOURLY, "hour=2013-02-05T07", "2013-02-05T07", "2013-02-05T12:00:00+00:00", id="hour"
    ),
    pytest.param(
        MONTHLY,
        "region=eu/month=2013-02",
        "eu~2013-02",
        "2013-02-01T05:00:00+00:00",
        id="value-month",
    ),
    pytest.param(
        NAMED,
        f"region={DEFAULT_NAME}/day=2013-02-05",
        "_5F_5FDEFAULT_5FPARTITION_5F_5F~2013-02-05",
        "2013-02-05T05:00:00+00:00",
        id="text-like-the-usual-default",
    ),
    pytest.param(BY_REGION, "region=eu", "eu", None, id="value"),
    pytest.param(WHOLE, "", "all", None, id="unpartitioned"),
]


@pytest.mark.parametrize(("config", "path", "key", "date"), EXAMPLES)
def test_key_of_a_partition_is_mapped_to_itself_with_its_date(
    config: PipelineConfig, path: str, key: str, date: str | None
) -> None:
    partition = Partitioning.of(config.target).parse(path)

    mapper = _scheduler_mapper(config)

    assert mappable_keys(config, [partition]) == [key]
    assert mapper.to_downstream(key) == key
    found = mapper.to_partition_date(key)
    assert (found.astimezone(UTC).isoformat() if found else None) == date


@pytest.mark.parametrize(("config", "path", "key", "date"), EXAMPLES)
def test_partition_is_read_from_key_and_from_path(
    config: PipelineConfig, path: str, key: str, date: str | None
) -> None:
    expected = Partitioning.of(config.target).parse(path)

    assert read_partition(config, key) == expected
    if path:
        assert read_partition(config, path) == expected


@given(st.text(min_size=1, max_size=20).filter(lambda text: text != DEFAULT_NAME))
def test_key_of_any_value_comes_back_through_the_mapper(value: str) -> None:
    partition = Partition((("dt", "2013-02-05"), ("hr", "07"), ("region", value)))

    (key,) = mappable_keys(BY_HOUR, [partition])

    assert _scheduler_mapper(BY_HOUR).to_downstream(key) == key
    assert read_partition(BY_HOUR, key) == partition


@pytest.mark.parametrize("path", [f"dt={DEFAULT_NAME}", "dt=yesterday", "dt=2013-02-30"])
def test_partition_whose_turn_cannot_come_is_not_announced(path: str) -> None:
    """Its event would be dropped without a run (AF-3.17)."""
    assert mappable_keys(DAILY, [Partitioning.of(DAILY.target).parse(path)]) == []


def test_example_key_is_one_that_the_mapper_reads() -> None:
    for config in (DAILY, BY_HOUR, HOURLY, MONTHLY, BY_REGION, WHOLE):
        key = example_key(config)

        assert _scheduler_mapper(config).to_downstream(key) == key


def test_key_and_path_of_null_name_one_partition_whatever_null_is_called() -> None:
    by_path = read_partition(NAMED, "region=none given/day=2013-02-05")

    assert by_path.key == "_null_~2013-02-05"
    assert read_partition(NAMED, by_path.key) == by_path
    assert str(by_path) == "region=none given/day=2013-02-05"


def test_consumer_in_the_readme_waits_for_partitions_of_the_published_asset() -> None:
    """A plain schedule of the asset never runs: its events have keys."""
    readme = Path(__file__).resolve().parents[2] / "README.md"
    (code,) = re.findall(r"```python\n(from airflow.*?)```", readme.read_text("utf-8"), re.DOTALL)
    made: dict[str, Any] = {}

    exec(code, made)

    asset = published_asset("orders")
    assert (made["published"].name, made["published"].uri) == (asset.name, asset.uri)
    mapper = decode_partition_mapper(encode_partition_mapper(made["days"]))
    assert mapper.to_downstream("2026-02-01") == "2026-02-01"
