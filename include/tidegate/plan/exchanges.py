"""Make the splits of an exchange: those that spread their rows, and those that gather a bucket."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.model.plan import Split, SubSplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.model.exchange import Exchange


def spreading(splits: Iterable[Split], begin: Exchange) -> Iterator[Split]:
    """Yield the same splits, which now spread their rows."""
    for item in splits:
        parts = tuple(replace(part, exchange=begin) for part in item.sub_splits)
        yield replace(item, sub_splits=parts)


def gathering(begin: Exchange, weight: int, term: str) -> Iterator[Split]:
    """Yield a split for each bucket of each later stage; the splits of a stage share the weight."""
    for stage in range(1, begin.stages + 1):
        for bucket in range(begin.buckets):
            part = SubSplit((), replace(begin, stage=stage, bucket=bucket))
            yield Split((part,), weight // begin.buckets, term)
