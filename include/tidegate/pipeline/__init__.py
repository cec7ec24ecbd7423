"""The composition root: the only place that sees every stage, and hands each one what it needs.

A Spark worker imports `staging` and none of the rest, so the names load when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.pipeline.pipeline import Pipeline, open_pipeline

__all__ = ["Pipeline", "open_pipeline"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("tidegate.pipeline.pipeline"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
