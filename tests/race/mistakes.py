"""Mistakes that the race walk has to see. Each is made in the process that calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MISTAKES: dict[str, Callable[[], None]] = {}
