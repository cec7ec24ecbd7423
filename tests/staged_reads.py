"""Read a table the whole way: window, plan, splits, tasks of an executor, part files."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.model.message import CommitMessage
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tidegate.execute import Executor
    from tidegate.model.run import PlannedWindow
    from tidegate.pipeline import Pipeline
    from tidegate.pipeline.load.loader import Preview

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass
class StagedReads:
    """A place where pipelines stage what they read; one ledger for all of them."""

    root: Path
    executor: Executor
    _names: Iterator[int] = field(default_factory=itertools.count)

    def table(self, source: Mapping[str, Any], **keys: Any) -> pa.Table:
        """Take one window of a source and give the rows of the part files, in plan order."""
        parts = [pq.read_table(path, partitioning=None) for path in self.files(source, **keys)]
        return pa.concat_tables(parts) if parts else pa.table({})

    def files(self, source: Mapping[str, Any], **keys: Any) -> list[str]:
        """Take one window of a source and give the paths of the part files, in plan order."""
        pipeline = self._pipeline(source, keys)
        planned = pipeline.plan(Run("run", "cli"), NOW)
        for window in planned:
            pipeline.stage(window, self.executor)
        return [path for window in planned for path in _parts(pipeline, window)]

    def preview(self, source: Mapping[str, Any], **keys: Any) -> Preview:
        """Plan what a window of a source would read."""
        return self._pipeline(source, keys).looking().preview(Run("run", "cli"), NOW)

    def _pipeline(self, source: Mapping[str, Any], keys: Mapping[str, Any]) -> Pipeline:
        name = f"read-{next(self._names)}"
        file = self.root / f"{name}.yaml"
        target = {"path": str(self.root / name)}
        file.write_text(json.dumps({"name": name, "source": source, "target": target, **keys}))
        return open_pipeline(file, ledger=f"sqlite:///{self.root}/ledger.db")


def _parts(pipeline: Pipeline, window: PlannedWindow) -> Iterator[str]:
    for split in read_splits(pipeline.storage, window.uri):
        for sub_split in split.sub_splits:
            path = layout.message_file(window.uri, sub_split.id)
            message = CommitMessage.from_text(pipeline.storage.read_bytes(path))
            for part in message.staged.parts:
                yield f"{window.uri}/{part.staged}"
