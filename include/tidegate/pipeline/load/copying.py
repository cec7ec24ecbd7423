"""Find the source files of a plan that are copied unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError
from tidegate.pipeline.state.reading import Reading
from tidegate.stage.sub_split import StageSpec
from tidegate.stage.whole_files import WholeFiles

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition
    from tidegate.model.plan import Piece, Pin
    from tidegate.plan.fan_out import FanOut
    from tidegate.source.protocol import Source


def whole_files(
    config: PipelineConfig,
    rows: Reading,
    planned_at: datetime,
    only: Iterable[Partition],
    erased: int | None,
) -> WholeFiles | None:
    """Return the test of which files are copied; None if the configuration rules out copying.

    No file is opened if the pipeline filters rows, has row rules or erased rows, settles changes,
    or arranges rows in another way than they came.

    Args:
        config: the configuration in the plan.
        rows: how the source is read.
        planned_at: the clock of the run.
        only: the partitions of a rebuild.
        erased: the number of the newest erasure.
    """
    target = config.target
    # The files of a sub-split would be copied before others are read, in another order.
    if config.keeps_order or target.sort_by or target.shuffle_by_partition:
        return None
    if target.copy_whole_files == "never" or not target.is_of_kind.copies_whole_files:
        return None
    if config.rows or erased is not None or not rows.keeps_rows:
        return None
    if not config.target.part_format.kind.is_copied:
        return None
    return WholeFiles(rows, rows.schema, StageSpec.of(config, planned_at, only))


@dataclass(frozen=True)
class UncutFiles:
    """Tells the planner which large files it need not cut because a task will copy them.

    The task decides again. If the file was replaced meanwhile, one task reads more than others.
    """

    config: PipelineConfig
    source: Source
    pin: Pin
    planned_at: datetime
    only: tuple[Partition, ...]
    erased: int | None
    """The number of the newest erasure."""
    fan_out: FanOut | None
    """Counts partitions by bounds that are known already; None where the target has no keys."""

    def __call__(self, piece: Piece) -> bool:
        """Return whether a file is copied; opens it unless its bounds say that it is not."""
        count = self.fan_out.at_least(piece.event_times) if self.fan_out else None
        if self._files is None or count not in {None, 1}:
            return False
        try:
            return self._files.part(piece) is not None
        except TidegateError:
            # The task that reads it reports the error.
            return False

    @cached_property
    def _files(self) -> WholeFiles | None:
        rows = Reading.of(self.config.source, self.source, self.pin)
        return whole_files(self.config, rows, self.planned_at, self.only, self.erased)
