"""Repeat a decision that another run came before; each attempt reads everything again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.errors import TransientError

T = TypeVar("T")

_ATTEMPTS = 5


def again_if(overtaken: type[TransientError], attempt: Callable[[], T]) -> T:
    """Call a function that decides and records, until no other run has come in between.

    Args:
        overtaken: raised by an attempt that another run came before, and by this function if this
            happened at each attempt.
        attempt: reads everything that it decides on.
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(overtaken):
            return attempt()
    return attempt()
