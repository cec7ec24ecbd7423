"""Open the executor that a pipeline asks for; only the one that is used is loaded."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.config import PipelineConfig
    from tidegate.execute import Executor
    from tidegate.pipeline import ExecutorFactory


def executors_for(config: PipelineConfig) -> ExecutorFactory:
    """Give what opens an executor by the name of its engine."""

    def open_executor(engine: str) -> Executor:
        if engine == "local":
            executor = import_module("tidegate.execute.local").LocalExecutor(config.execute.workers)
        else:
            executor = import_module("tidegate.execute.spark").SparkExecutor()
        opened: Executor = executor
        return opened

    return open_executor
