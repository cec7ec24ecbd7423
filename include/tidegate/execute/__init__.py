"""Where splits are staged: in this process, or in Spark tasks."""

from tidegate.execute.protocol import Executor, StageTask

__all__ = ["Executor", "StageTask"]
