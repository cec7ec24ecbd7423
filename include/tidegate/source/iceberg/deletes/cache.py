"""Cache the content of delete files, for all threads of a process, in bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_Loaded = TypeVar("_Loaded")


class DeleteCache:
    """A cache of recently used values; threads that need the same one wait until it is loaded."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size_bytes = 0
        self._changing = threading.Lock()
        self._loading: dict[Hashable, threading.Lock] = {}

    def get(
        self, key: Hashable, load: Callable[[], tuple[_Loaded, int]], most_bytes: int
    ) -> _Loaded:
        """Return the value of a key; load and keep it if necessary.

        Args:
            key: identifies the value and its type.
            load: returns the value with its size in bytes; called without any lock but the key's
                own.
            most_bytes: the bound of all values together; the least recently used one is dropped
                first, and a larger value is not kept.
        """
        with self._changing:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            with self._changing:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found: _Loaded = self._kept[key][0]
                    return found
            loaded, size_bytes = load()
            with self._changing:
                self._keep(key, loaded, size_bytes, most_bytes)
                self._loading.pop(key, None)
            return loaded

    def _keep(self, key: Hashable, loaded: object, size_bytes: int, most_bytes: int) -> None:
        if size_bytes > most_bytes or key in self._kept:
            return
        self._kept[key] = (loaded, size_bytes)
        self._size_bytes += size_bytes
        while self._size_bytes > most_bytes:
            _, (_, freed) = self._kept.popitem(last=False)
            self._size_bytes -= freed


DELETES = DeleteCache()
"""The cache of this process (ICE-6.7, 6.9)."""
