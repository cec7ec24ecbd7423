"""The column that holds event times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EventColumn:
    """The column whose bounds a plan wants to know of every file (ICE-5.10)."""

    name: str
    timezone: str
    """Of times that name no zone."""
    unit: str = "us"
    """What a column of whole numbers counts since 1970."""
