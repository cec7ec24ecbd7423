"""Tidegate from a notebook or a test: look at changes, run a pipeline, read what was published.

Reads the clock, once per call, as the command line does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.pipeline.changes import Bound, pipeline_changes, read_changes
from tidegate.pipeline.executors import executors_for
from tidegate.pipeline.state.holders import process_owner
from tidegate.target.committed import read_committed

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tidegate.model.report import PartitionExplanation, PipelineReport
    from tidegate.model.run import Announced, PublishOutcome
    from tidegate.pipeline.load.loader import Preview

__all__ = ["LoadedPipeline", "TidegateError", "load_pipeline", "read_changes", "read_committed"]


@dataclass(frozen=True, repr=False)
class LoadedPipeline:
    """A pipeline as described by its file; every method may be called again at any time."""

    pipeline: Pipeline

    def __repr__(self) -> str:
        """Name the pipeline and its file."""
        config = self.pipeline.config
        return f"{type(self).__name__}({config.name!r}, {config.file!r})"

    def changes(
        self,
        start_exclusive: Bound | None = None,
        end_inclusive: Bound | None = None,
        *,
        mode: str | None = None,
        limit: int | None = None,
    ) -> pa.RecordBatchReader:
        """Read the changes of the source between two instants; changes nothing.

        Args:
            start_exclusive: see `read_changes`; a date or time without a zone is in the pipeline's.
            end_inclusive: the same.
            mode: by default that of the pipeline.
            limit: the most rows.

        Examples:
            >>> load_pipeline(pipeline_file).changes("2020-01-01").read_all().num_rows
            3
        """
        return pipeline_changes(
            self.pipeline.config,
            start_exclusive=start_exclusive,
            end_inclusive=end_inclusive,
            mode=mode,
            limit=limit,
        )

    def plan(self, until: datetime | None = None) -> Preview:
        """Return what a load would read; changes nothing.

        Args:
            until: aware time; only source commits before it are read, by default all.

        Examples:
            >>> load_pipeline(pipeline_file).plan().plan.totals.rows
            3
        """
        return self.pipeline.looking().preview(self._run(until), _now())

    def load(self, until: datetime | None = None) -> Announced:
        """Read, stage and announce the new changes of the source.

        Args:
            until: aware time; only source commits before it are read, by default all.

        Raises:
            WindowOpen: another run works on the pipeline (Transient).

        Examples:
            >>> [str(partition) for partition in load_pipeline(pipeline_file).load().partitions]
            ['dt=2026-02-01', 'dt=2026-02-02']
        """
        executors = executors_for(self.pipeline.config)
        return self.pipeline.load(self._run(until), _now(), executors)

    def publish(self, partition: str | None = None) -> list[PublishOutcome]:
        """Commit the partitions that are complete and good.

        Args:
            partition: such as `dt=2026-02-01`; by default every pending partition.

        Examples:
            >>> [
            ...     (str(item.partition), item.state)
            ...     for item in load_pipeline(pipeline_file).publish()
            ... ]
            [('dt=2026-02-01', 'committed'), ('dt=2026-02-02', 'pending')]
        """
        owner = process_owner("library")
        if partition is not None:
            target = self.pipeline.parse_partition(partition)
            return [self.pipeline.publish(target, owner, _now(), by_command=True)]
        return list(self.pipeline.publish_all(owner, _now()))

    def status(self) -> PipelineReport | None:
        """Return the state of the pipeline and its partitions; None if it was never loaded.

        Examples:
            >>> [item.name for item in load_pipeline(pipeline_file).status().partitions]
            ['committed', 'pending']
        """
        return self.pipeline.status(_now())

    def explain(self, partition: str) -> PartitionExplanation:
        """Return why a partition is or is not published.

        Args:
            partition: such as `dt=2026-02-01`.

        Examples:
            >>> load_pipeline(pipeline_file).explain("dt=2026-02-02").evaluation.reason.value
            'WATERMARK_BEHIND'
        """
        return self.pipeline.explain(self.pipeline.parse_partition(partition), _now())

    def _run(self, until: datetime | None) -> Run:
        owner = process_owner("library")
        return Run(id=owner, owner=owner, until=until)


def load_pipeline(path: str | Path) -> LoadedPipeline:
    """Open a pipeline by its file, or by its name among the pipeline files.

    Raises:
        ConfigInvalid, PipelineNotFound: there is no usable file.
        LedgerUnreachable: the ledger does not answer (Transient).

    Examples:
        >>> load_pipeline(pipeline_file).pipeline.config.name
        'orders'
    """
    return LoadedPipeline(open_pipeline(path))


def _now() -> datetime:
    return datetime.now(UTC)
