"""What pyarrow and other writers ask of a binary file that is only written, from its beginning."""

from __future__ import annotations


class WriteOnly:
    """A file that has nothing to flush, and no position to go back to."""

    def flush(self) -> None:
        """Do nothing: nobody sees more of the file by that."""

    def readable(self) -> bool:
        """Return False: the file is write-only."""
        return False

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return False: the position cannot be changed."""
        return False
