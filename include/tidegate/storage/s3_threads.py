"""Do several requests to a store side by side: most of the time is waiting."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_THREADS = 16

_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")


def threads() -> ThreadPoolExecutor:
    """Return the threads of this process: a fork has none of those that its parent had."""
    return _threads(os.getpid())


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix=f"tidegate-s3-{process}")


def answers(do: Callable[[_Asked], _Found], items: Iterable[_Asked]) -> list[_Found]:
    """Do something for each item, and return what came of it, in their order.

    Nothing is left running when it returns, or raises the first failure.
    """
    asked = [*items]
    if len(asked) == 1:
        return [do(asked[0])]
    begun = [threads().submit(do, item) for item in asked]
    failures = [failed for each in begun if (failed := each.exception()) is not None]
    if failures:
        raise failures[0]
    return [each.result() for each in begun]
