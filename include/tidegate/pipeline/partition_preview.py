"""Find the target partitions that a load would touch, reading only the columns for this."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidegate.pipeline.load.change_stream import ChangeStream
from tidegate.pipeline.load.scanning import pinned_at
from tidegate.pipeline.state.reading import Reading, filter_columns
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.stage.partition_split import PartitionComputer, columns_of

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.model.partition import Partition
    from tidegate.model.plan import Window
    from tidegate.pipeline.pipeline import Pipeline


def touched_partitions(pipeline: Pipeline, window: Window, now: datetime) -> dict[Partition, int]:
    """Count the rows of a window by target partition, before row rules; writes nothing.

    Returns:
        Partition → rows, in order of their paths.
    """
    config = pipeline.config
    target = config.target
    read = config.source.read
    if not read.emits_kinds:
        # Changes are settled by whole rows: fewer columns would make different rows equal.
        columns = columns_of(target.partition_by) or None
        read = read.model_copy(update={"columns": columns})
    narrow = config.source.model_copy(update={"read": read})
    listings = layout.listings_root(pipeline.roots.work)
    source = open_source(narrow, pipeline.storage, listings, filter_columns(read))
    pin = pinned_at(source, source.timeline.pin(now, after=window.range.start_exclusive), window)
    reading = Reading.of(narrow, source, pin)
    computer = PartitionComputer(
        reading.schema,
        target.partition_by,
        timezone=config.timezone,
        default_name=target.default_partition_name,
    )
    rows: Counter[Partition] = Counter()
    units = source.slicing.units(pin, window.range, whole=window.kind.reads_whole)
    for batch in ChangeStream(source.name, reading, narrow.split).batches(units.pieces):
        split = computer.split(batch)
        for partition, part in split.slices(batch):
            rows[partition] += part.num_rows
    return {partition: rows[partition] for partition in sorted(rows, key=lambda item: item.path)}
