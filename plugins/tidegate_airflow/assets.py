"""The assets of a pipeline, the keys of its partitions, and their mapper (AF-3.16–3.19)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow.sdk import (
    Asset,
    IdentityMapper,
    PartitionMapper,
    ProductMapper,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
)

from tidegate.model.partition import PartitionField, Transform
from tidegate.model.partition_value import hour_is_of_day, time_fields, value_format
from tidegate.target.partitioning import Partitioning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition

# Finest first: a target partitioned by month and day has its date in the day.
_MAPPERS = {
    Transform.HOUR: StartOfHourMapper,
    Transform.DAY: StartOfDayMapper,
    Transform.MONTH: StartOfMonthMapper,
}


def staged_asset(pipeline: str) -> Asset:
    """Return the asset that a load updates: rows are staged for these partitions."""
    return Asset(name=f"{pipeline}_staged", uri=f"tidegate://{pipeline}/staged")


def published_asset(pipeline: str) -> Asset:
    """Return the asset that other DAGs wait for: these partitions are published (AF-3.29)."""
    return Asset(name=f"{pipeline}_published", uri=f"tidegate://{pipeline}/published")


def partition_mapper(config: PipelineConfig) -> PartitionMapper:
    """Return the publish DAG's mapper: at most one temporal part, others unchanged (AF-3.18)."""
    fields = config.target.partition_by
    dated = _dated_field(config)
    mappers: list[PartitionMapper] = [
        _MAPPERS[field.transform](
            input_format=value_format(field, fields), timezone=config.timezone
        )
        if field == dated
        else IdentityMapper()
        for field in fields
    ]
    if len(mappers) > 1:
        return ProductMapper(*mappers, delimiter="~")
    return mappers[0] if mappers else IdentityMapper()


def mappable_keys(config: PipelineConfig, partitions: Iterable[Partition]) -> list[str]:
    """Return the keys, in order, of the partitions that a publish run can commit.

    Left out are default partitions, and values that the mapper cannot parse, because their event
    would be dropped without a run (AF-3.17). `tidegate status` shows them, `tidegate publish`
    publishes them.
    """
    return sorted(
        item.key for item in partitions if not item.is_default and _is_dated(config, item)
    )


def read_partition(config: PipelineConfig, text: str) -> Partition:
    """Parse a partition's key (`2026-11-01~eu`) or path (`dt=2026-11-01/region=eu`).

    Raises:
        PartitionPathInvalid: it does not have exactly one value per partition key.
    """
    return Partitioning.of(config.target).read(text)


def example_key(config: PipelineConfig) -> str:
    """Return a key of the right form, for the parameter's description."""
    return Partitioning.of(config.target).example.key


def _dated_field(config: PipelineConfig) -> PartitionField | None:
    fields = config.target.partition_by
    dated = [
        field
        for field in time_fields(fields, config.event_time.column if config.event_time else None)
        if not hour_is_of_day(field, fields)
    ]
    return min(dated, key=lambda field: list(_MAPPERS).index(field.transform), default=None)


def _is_dated(config: PipelineConfig, partition: Partition) -> bool:
    field = _dated_field(config)
    if field is None:
        return True
    form = value_format(field, config.target.partition_by)
    try:
        datetime.strptime(dict(partition.values)[field.name] or "", form)  # noqa: DTZ007
    except ValueError:
        return False
    return True
