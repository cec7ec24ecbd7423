"""Make the next items of an iterator in a thread, while earlier ones are used."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_Item = TypeVar("_Item", bound=object)


def read_ahead(items: Iterator[_Item], count: int) -> Generator[_Item, None, None]:
    """Yield the same items in the same order; one that fails raises when it is reached.

    Args:
        items: none is None. Another thread asks for them, never two at once.
        count: the most items that are made ahead, at least one.
    """
    with ThreadPoolExecutor(1, "read-ahead") as pool:
        ahead = deque(pool.submit(next, items, None) for _ in range(count))
        try:
            while (item := ahead.popleft().result()) is not None:
                ahead.append(pool.submit(next, items, None))
                yield item
        finally:
            for future in ahead:
                future.cancel()
