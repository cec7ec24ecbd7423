"""Keep values read from write-once files, so that each file is decoded once, not per partition.

A commit message names files of all partitions that its sub-split met, and an announce all
partitions of its window. Who publishes one partition after the other would decode them for each of
them: the cost would be the square of the number of partitions.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tidegate.storage import Storage

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class _Kept(Generic[_Read]):
    value: _Read
    version: Hashable
    weight: int


class KeptValues(Generic[_Read]):
    """Values of files, least recently used first; as many as their weights allow.

    Write-once files never change, but a process that lives long may see a work directory restored
    from a backup below it. Therefore every use compares the file's version, which costs one look at
    its status. The version is read before the content: if the file is replaced in between, the next
    use finds another version and reads again.
    """

    def __init__(
        self,
        storage: Storage,
        read: Callable[[str], _Read],
        weigh: Callable[[_Read], int],
        limit: int,
    ) -> None:
        """Keep what is read from files of a storage.

        Args:
            storage: of the files.
            read: reads the value of the file at a path; its errors are not kept.
            weigh: returns the weight of a value.
            limit: of the weights together; a heavier value is read each time.
        """
        self._storage = storage
        self._read = read
        self._weigh = weigh
        self._limit = limit
        self._kept: OrderedDict[str, _Kept[_Read]] = OrderedDict()
        self._total = 0
        self._guard = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}

    def get(self, path: str) -> _Read:
        """Return the value of the file at a path."""
        version = self._storage.version(path)
        kept = self._found(path, version)
        if kept is not None:
            return kept.value
        with self._guard:
            turn = self._turns.setdefault(path, threading.Lock())
        # Threads that begin together ask for the same files: one reads, and the others wait for it.
        with turn:
            kept = self._found(path, version)
            if kept is not None:
                return kept.value
            try:
                value = self._read(path)
                if version is not None:
                    self._keep(path, _Kept(value, version, self._weigh(value)))
            finally:
                with self._guard:
                    self._turns.pop(path, None)
        return value

    def _found(self, path: str, version: Hashable) -> _Kept[_Read] | None:
        with self._guard:
            kept = self._kept.get(path)
            if kept is None or version is None or kept.version != version:
                return None
            self._kept.move_to_end(path)
            return kept

    def _keep(self, path: str, fresh: _Kept[_Read]) -> None:
        with self._guard:
            former = self._kept.pop(path, None)
            self._total -= former.weight if former else 0
            if fresh.weight > self._limit:
                return
            self._kept[path] = fresh
            self._total += fresh.weight
            while self._total > self._limit:
                _, oldest = self._kept.popitem(last=False)
                self._total -= oldest.weight
