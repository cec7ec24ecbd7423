"""Windows that read partitions of the source whole, as partitions of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import ModeChanged, PartitionsUnlikeSource
from tidegate.model.partition import Partition, Transform
from tidegate.model.plan import WindowKind
from tidegate.stage.partition_split import PartitionComputer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import PartitionField
    from tidegate.model.plan import Window
    from tidegate.source.slicing import Units


def replaced_partitions(
    config: PipelineConfig, window: Window, units: Units
) -> tuple[Partition, ...]:
    """Return what a window replaces, by the keys of the target that the source's partitions have.

    Raises:
        ModeChanged: the window was taken to replace partitions and would add rows, or the other way
            round: rows of other windows would count twice, or stay for ever.
    """
    if window.kind in {WindowKind.LOAD, WindowKind.HISTORY, WindowKind.REPLACE}:
        reads_whole = units.replaced is not None
        if reads_whole != (window.kind is WindowKind.REPLACE):
            raise ModeChanged(pipeline=config.name, window=window.sequence, kind=window.kind.value)
    if units.replaced is None or window.kind is not WindowKind.REPLACE:
        return ()
    return tuple(sorted(_spelled(config, units.replaced), key=lambda item: item.path))


def check_keys(config: PipelineConfig, columns: Sequence[str]) -> None:
    """Check that the target's partitions are told apart as those of the source are.

    Args:
        config: the pipeline.
        columns: the source's partition columns, if windows replace its partitions whole.

    Raises:
        PartitionsUnlikeSource: the target has no key for one of them.
    """
    keys = {field.column for field in _keys(config, columns)}
    missing = [column for column in columns if column not in keys]
    if missing:
        raise PartitionsUnlikeSource(pipeline=config.name, column=missing[0])


def _keys(config: PipelineConfig, columns: Sequence[str]) -> list[PartitionField]:
    return [
        field
        for field in config.target.partition_by
        if field.transform is Transform.IDENTITY and field.column in columns
    ]


def _spelled(
    config: PipelineConfig, replaced: Sequence[Mapping[str, pa.Scalar]]
) -> Iterable[Partition]:
    columns = list(replaced[0]) if replaced else []
    fields = _keys(config, columns)
    if not fields:
        return {Partition(()) for _ in replaced}
    import pyarrow as pa

    values = pa.RecordBatch.from_pydict(
        {
            column: pa.array([item[column].as_py() for item in replaced], replaced[0][column].type)
            for column in columns
        }
    )
    computer = PartitionComputer(
        values.schema,
        fields,
        timezone=config.timezone,
        default_name=config.target.default_partition_name,
    )
    return computer.split(values).partitions
