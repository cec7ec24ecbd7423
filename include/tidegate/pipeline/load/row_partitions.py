"""Tell which partitions the rows of files belong to, by the columns that decide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.pipeline.state.reading import Reading
from tidegate.predicate import named_columns
from tidegate.stage.partition_split import PartitionComputer, columns_of
from tidegate.stage.row_rules import RowRules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition
    from tidegate.model.plan import Piece, Pin
    from tidegate.source.protocol import Source


def deciding_columns(config: PipelineConfig) -> frozenset[str]:
    """Return the columns that decide whether a row is kept, and in which partition."""
    read = config.source.read
    conditions = [(read.filter, "source.read.filter")] if read.filter else []
    conditions += [(rule.where, f"rows.{rule.name}.where") for rule in config.rows]
    named = (name for text, where in conditions for name in named_columns(text, where))
    return frozenset([*columns_of(config.target.partition_by), *named])


def partitions_of_rows(
    config: PipelineConfig, source: Source, pin: Pin, pieces: Iterable[Piece]
) -> set[Partition]:
    """Read which partitions the rows of some files belong to; those that are put aside to none.

    Args:
        config: of the pipeline.
        source: its source.
        pin: with the deciding columns.
        pieces: the files.

    Raises:
        TidegateError: a file cannot be read, or its rows have no partition.
    """
    reading = Reading.of(config.source, source, pin)
    computer = PartitionComputer(
        reading.schema,
        config.target.partition_by,
        timezone=config.timezone,
        default_name=config.target.default_partition_name,
    )
    rules = RowRules(config.rows, reading.schema)
    found: set[Partition] = set()
    for batch in reading.batches(pieces):
        kept = rules.judge(batch).kept
        if kept.num_rows:
            found.update(computer.split(kept).partitions)
    return found
