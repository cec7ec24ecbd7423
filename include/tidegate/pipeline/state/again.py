"""Do again what others came before: each attempt looks anew, and a few are enough."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.errors import TransientError

T = TypeVar("T")

_ATTEMPTS = 5


def again_if(overtaken: type[TransientError], attempt: Callable[[], T]) -> T:
    """Call what decides on something and records it, until nobody came between.

    Args:
        overtaken: raised by an attempt that others came before, and by this function if they did
            each time.
        attempt: reads anew whatever it decides on.
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(overtaken):
            return attempt()
    return attempt()
