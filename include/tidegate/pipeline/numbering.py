"""Do again what was recorded too late: each time under a new number (design §4)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import NumberPassed

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_ATTEMPTS = 5


def again_if_passed(record: Callable[[], T]) -> T:
    """Call what reserves a number, writes a file under it and records both.

    Raises:
        NumberPassed: others recorded something newer each time (Transient).
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(NumberPassed):
            return record()
    return record()
