"""A new file of a mounted file system, for pyarrow and other writers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.storage.refusals import refusal
from tidegate.storage.write_only import WriteOnly

if TYPE_CHECKING:
    from tidegate.storage.calls import OsCalls


class NewFile(WriteOnly):
    """A binary file that is being written.

    It is visible, so its directory must not be one that readers list.
    """

    def __init__(self, calls: OsCalls, path: str) -> None:
        self._calls = calls
        self._path = path
        self._descriptor = calls.create(path)
        self._position = 0
        self.closed = False

    def write(self, content: bytes) -> int:
        """Write all of the bytes, and return their number."""
        view = memoryview(content).cast("B")
        size = len(view)
        try:
            while view:
                view = view[self._calls.write(self._descriptor, view) :]
        except OSError as refused:
            raise refusal(self._path, refused) from refused
        self._position += size
        return size

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._position

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        if self.closed:
            return
        self.closed = True
        try:
            os.close(self._descriptor)
        except OSError as refused:
            raise refusal(self._path, refused) from refused

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
