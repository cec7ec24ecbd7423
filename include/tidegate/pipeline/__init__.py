"""The composition root: the only place that sees every stage, and hands each one what it needs.

A Spark worker imports `staging` and none of the rest, so the names load when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.importing import import_at_rest

if TYPE_CHECKING:
    from tidegate.pipeline.control import PipelineControl, open_control
    from tidegate.pipeline.pipeline import Pipeline, open_pipeline

__all__ = ["Pipeline", "PipelineControl", "open_control", "open_pipeline"]
_HOMES = {"PipelineControl": "control", "open_control": "control"}
"""The module of each name that is not of `pipeline`, which imports all that reads rows."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_at_rest(f"{__name__}.{_HOMES.get(name, 'pipeline')}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
