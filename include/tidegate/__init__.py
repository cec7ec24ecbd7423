"""Tidegate publishes partitions of what changed in a lake table, when they are complete and good.

The names here are the library; they are loaded when they are first used, so that importing a part
of the package, as Airflow does for every DAG, stays light.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.errors import TidegateError
    from tidegate.library import LoadedPipeline, load_pipeline, read_changes, read_committed

__version__ = "0.1.0"
__all__ = ["LoadedPipeline", "TidegateError", "load_pipeline", "read_changes", "read_committed"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("tidegate.library"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    rooms = (name for name, value in globals().items() if isinstance(value, ModuleType))
    return sorted({*__all__, "__version__", *rooms})
