"""Open the executor of a pipeline, by the name of the engine; others are not imported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidegate.execute import Executor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import PipelineConfig
    from tidegate.gate.frame import SparkRows
    from tidegate.metastore.protocol import Metastore

ExecutorFactory = Callable[[str], contextlib.AbstractContextManager[Executor]]
"""Engine name, `local` or `spark` → a context manager for the executor."""


def executors_for(config: PipelineConfig) -> ExecutorFactory:
    """Return the function that opens an executor by the name of its engine."""

    def open_executor(engine: str) -> Executor:
        if engine == "local":
            executor = import_module("tidegate.execute.local").LocalExecutor(config.execute.workers)
        else:
            executor = import_module("tidegate.execute.spark").SparkExecutor()
        opened: Executor = executor
        return opened

    return open_executor


def part_files_in_spark(
    files: Sequence[str], columns: Sequence[str], read: SparkRows | None = None
) -> Any:
    """Return part files as a Spark frame, for a gate whose partition is too large for pandas."""
    session = import_module("tidegate.execute.session").open_session("tidegate gate")
    return import_module("tidegate.execute.frames").spark_frame(session, files, columns, read)


def table_in_spark(table: str) -> Metastore:
    """Return a table as Spark's catalog lists it; Spark is started when it is asked first."""
    found: Metastore = import_module("tidegate.execute.catalog").CatalogTable(table)
    return found
