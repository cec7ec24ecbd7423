"""Rehearse what a load does with rows, on none of them, to find what it would refuse."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    ColumnMissing,
    ColumnsAlike,
    ColumnUnfit,
    PartitionFieldInvalid,
    PartitionTimeUnnamed,
    TidegateError,
)
from tidegate.model.part_format import PARQUET
from tidegate.model.partition import Transform
from tidegate.model.partition_value import time_fields
from tidegate.stage.sub_split import AttemptPlace, StageSpec, stage_sub_split
from tidegate.storage import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.config.document import Place
    from tidegate.pipeline.state.reading import Reading

_NOWHERE = AttemptPlace("/rehearsal", "rehearsal", "rehearsal", "rehearsal")


def mistakes(
    config: PipelineConfig, reading: Reading, now: datetime
) -> Iterator[tuple[Place, TidegateError]]:
    """Stage no rows, as a load would stage those that are read; nothing is written.

    Each partition key, the event time and each rule are tried alone, so that the mistake of one
    hides no other. Partitions that would wait for ever are refused as well.

    Args:
        config: the pipeline.
        reading: its source, pinned, with the filter.
        now: clock of the command.

    Yields:
        The place in the pipeline file, and
        ColumnMissing: a column of a partition key, of the event time or to sort by does not exist.
        SchemaIncompatible: event times have a type that is none.
        PartitionFieldInvalid: a partition key does not fit its column's type.
        PredicateInvalid: a row rule does not fit the schema.
        ColumnUnfit: the format of the target cannot hold a column.
        ColumnsAlike: the names of two columns differ only in case.
        SortColumnInvalid: the values of a column to sort by have no order.
        PartitionTimeUnnamed: partitions wait for a time that their values cannot name.
    """
    whole = StageSpec.of(config, now)
    for place, spec in _parts(whole):
        try:
            _stage_none(reading, spec)
        except ColumnsAlike:
            # Told below, of the columns that the files will have.
            pass
        except TidegateError as refused:
            yield place, refused
    # With the keys, which are not columns of the files; what is wrong with them was told above.
    with suppress(PartitionFieldInvalid, ColumnMissing):
        try:
            _stage_none(reading, replace(whole, rules=(), event_time=None))
        except ColumnUnfit as refused:
            yield ("target", "format"), refused
        except ColumnsAlike as refused:
            yield ("source", "read", "columns"), refused
    try:
        _check_partition_time(config, reading)
    except PartitionTimeUnnamed as refused:
        yield ("target", "partition_by", refused.key), refused


def rehearse(config: PipelineConfig, reading: Reading, now: datetime) -> None:
    """Stage no rows, so that what no task could stage is refused before a window is taken.

    Args:
        config: the pipeline.
        reading: its source, pinned, with the filter.
        now: clock of the run.

    Raises:
        ColumnMissing, SchemaIncompatible, PartitionFieldInvalid, PredicateInvalid, ColumnUnfit,
        ColumnsAlike, SortColumnInvalid: see `mistakes`.
    """
    _stage_none(reading, StageSpec.of(config, now))


def _stage_none(reading: Reading, spec: StageSpec) -> None:
    stage_sub_split((), reading.schema, spec, _NOWHERE, Scratch())


def _parts(whole: StageSpec) -> Iterator[tuple[Place, StageSpec]]:
    nothing = replace(whole, fields=(), rules=(), event_time=None, form=PARQUET, sort_by=())
    for field in whole.fields:
        yield ("target", "partition_by", field.name), replace(nothing, fields=(field,))
    for number, rule in enumerate(whole.rules):
        yield ("rows", number, "where"), replace(nothing, rules=(rule,))
    for number, key in enumerate(whole.sort_by):
        yield ("target", "sort_by", number), replace(nothing, sort_by=(key,))
    yield ("event_time", "column"), replace(nothing, event_time=whole.event_time)


def _check_partition_time(config: PipelineConfig, reading: Reading) -> None:
    import pyarrow as pa

    fields, said = config.target.partition_by, config.commit.partition_time
    column = config.event_time.column if config.event_time else None
    is_told = said is not None and (said.pattern or said.formatter) is not None
    is_named = time_fields(fields, column) or is_told
    if not fields or not config.commit.waits_for_watermark or is_named:
        return
    if fields[0].transform is Transform.STATIC:
        return
    found = reading.schema.field(fields[0].column).type
    if pa.types.is_integer(found) or pa.types.is_boolean(found) or pa.types.is_decimal(found):
        raise PartitionTimeUnnamed(key=fields[0].name, found=str(found))
