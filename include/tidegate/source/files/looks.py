"""Look at many files in threads: a few on a disk, more in a store, where most time is waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from tidegate.storage import is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_THREADS = 2
_FILES_PER_CALL = 64
"""Submitting one file to a thread costs more than reading its footer."""
_THREADS_OF_A_STORE = 16

_File = TypeVar("_File")
_Said = TypeVar("_Said")


def looked_at(root: str, files: Sequence[_File], look: Callable[[_File], _Said]) -> Iterator[_Said]:
    """Look at files in threads, many per call on a disk, and yield the results in their order.

    Args:
        root: the folder that they are in.
        files: what is looked at.
        look: looks at one.
    """
    far = is_object(root)
    threads, step = (_THREADS_OF_A_STORE, 1) if far else (_THREADS, _FILES_PER_CALL)
    calls = [files[at : at + step] for at in range(0, len(files), step)]
    with ThreadPoolExecutor(threads) as pool:
        for found in pool.map(lambda call: [look(file) for file in call], calls):
            yield from found
