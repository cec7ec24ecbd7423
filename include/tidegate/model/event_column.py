"""The column that holds event times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EventColumn:
    """The column whose bounds a plan needs for every file (ICE-5.10)."""

    name: str
    timezone: str
    """The zone of times without one."""
    unit: str = "us"
    """The unit of a column of whole numbers, counted since 1970."""
