"""Rehearse what a load does with rows, on none of them, to find what it would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import PartitionTimeUnnamed
from tidegate.model.partition_value import time_fields
from tidegate.stage.sub_split import AttemptPlace, StageSpec, stage_sub_split
from tidegate.storage import Scratch

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.pipeline.state.reading import Reading

_NOWHERE = AttemptPlace("/rehearsal", "rehearsal", "rehearsal", "rehearsal")


def rehearse(config: PipelineConfig, reading: Reading, now: datetime) -> None:
    """Stage no rows, as a load would stage those that are read; nothing is written.

    Partitions that would wait for ever are refused as well.

    Args:
        config: the pipeline.
        reading: its source, pinned, with the filter.
        now: clock of the command.

    Raises:
        ColumnMissing: a column of a partition key or of the event time does not exist.
        SchemaIncompatible: event times have a type that is none.
        PartitionFieldInvalid: a partition key does not fit its column's type.
        PredicateInvalid: a row rule does not fit the schema.
        PartitionTimeUnnamed: partitions wait for a time that their values cannot name.
    """
    stage_sub_split((), reading.schema, StageSpec.of(config, now), _NOWHERE, Scratch())
    _check_partition_time(config, reading)


def _check_partition_time(config: PipelineConfig, reading: Reading) -> None:
    import pyarrow as pa

    fields, said = config.target.partition_by, config.commit.partition_time
    column = config.event_time.column if config.event_time else None
    is_told = said is not None and (said.pattern or said.formatter) is not None
    is_named = time_fields(fields, column) or is_told
    if not fields or not config.commit.waits_for_watermark or is_named:
        return
    found = reading.schema.field(fields[0].column).type
    if pa.types.is_integer(found) or pa.types.is_boolean(found) or pa.types.is_decimal(found):
        raise PartitionTimeUnnamed(key=fields[0].name, found=str(found))
