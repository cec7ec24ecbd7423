"""Pack weighed items into bins, in order and deterministically. Knows nothing about the items."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")


@dataclass(slots=True)
class _Bin(Generic[Item]):
    number: int
    items: list[Item] = field(default_factory=list)
    weight: int = 0


def pack(
    items: Iterable[Item], weight: Callable[[Item], int], target: int, lookback: int = 10
) -> Iterator[tuple[Item, ...]]:
    """Pack items into bins whose weight exceeds the target only if a single item does (ICE-5.6).

    Args:
        items: in the order that should be kept inside bins and, roughly, between them.
        weight: the weight of an item, at least 0.
        target: the maximum weight of a bin.
        lookback: the number of bins that stay open for later items; 1 keeps the order strictly.

    Yields:
        The bins, in the order of their first items.
    """
    done: dict[int, tuple[Item, ...]] = {}
    open_bins: deque[_Bin[Item]] = deque()
    opened = given = 0
    for item in items:
        heavy = weight(item)
        for fitting in open_bins:
            if fitting.weight + heavy <= target:
                break
        else:
            fitting = _Bin(opened)
            opened += 1
            open_bins.append(fitting)
        fitting.items.append(item)
        fitting.weight += heavy
        if len(open_bins) > lookback:
            closed = open_bins.popleft()
            done[closed.number] = tuple(closed.items)
        while given in done:
            yield done.pop(given)
            given += 1
    yield from (tuple(bin_.items) for bin_ in open_bins)
