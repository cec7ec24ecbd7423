"""Do something for several partitions at once, in threads, and return what came of each in order.

Most of what a commit costs is waiting: for the disk, for a store, for a catalog.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

_AHEAD = 2
"""How many times as many as are worked on may be ahead of the first that is not done."""

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def side_by_side(
    work: Callable[[_Item], _Made], items: Sequence[_Item], at_once: int
) -> Iterator[_Made]:
    """Yield what comes of each item, in their order.

    Args:
        work: done for each item, by `at_once` threads. An error ends everything: what was begun is
            waited for, and nothing else begins; the same if the caller takes no more.
        items: begun in their order.
        at_once: 1: in the caller's thread, one item whenever the caller asks for the next.
    """
    if at_once == 1 or len(items) == 1:
        yield from map(work, items)
        return
    begun: deque[Future[_Made]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="tidegate-publish") as threads:
        try:
            for item in items:
                begun.append(threads.submit(work, item))
                if len(begun) > at_once * _AHEAD:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for each in begun:
                each.cancel()
