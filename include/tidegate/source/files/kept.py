"""The history that Tidegate keeps of a directory: its listings."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tidegate.errors import HistoryChanged, StateFileDamaged, StateFileLost
from tidegate.source.files.listing import came

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.errors import TerminalError
    from tidegate.model.instant import DataInterval, Instant, InstantRange
    from tidegate.model.plan import Pin
    from tidegate.source.files.folder import Folder


class KeptListings:
    """The `KeptHistory` of one directory."""

    def __init__(self, folder: Folder) -> None:
        """Prepare."""
        self._folder = folder

    def has_lost(self, window: InstantRange) -> bool:
        """Return whether one of a window's two listings is gone; a damaged one is an error."""
        with contextlib.suppress(StateFileDamaged):
            try:
                for instant in filter(None, (window.start_exclusive, window.end_inclusive)):
                    self._folder.listing(instant)
            except StateFileLost:
                return True
        return False

    def missing(self, checkpoint: Instant, start: Instant | None) -> Iterator[TerminalError]:
        """Return errors for those of the two listings that are not there as written."""
        for read, instant in ((self._folder.known, checkpoint), (self._folder.left_out, start)):
            try:
                if instant is not None:
                    read(instant)
            except (StateFileLost, StateFileDamaged) as missed:
                yield missed

    def check_history(self, pin: Pin, before: Instant, interval: DataInterval) -> None:
        """Compare the files that arrived in an interval with the current ones.

        Raises:
            HistoryChanged: one of them changed or vanished since.
        """
        whole = self._folder.store.head(before, self._folder.root).instant
        listing = self._folder.listing(before)
        standing = {file.path: file for file in self._folder.head(pin).files}
        for file in listing.files:
            found = standing.get(file.path)
            is_kept = found is not None and found.is_same(file)
            if not is_kept and interval.covers(came(file, whole)):
                raise HistoryChanged(
                    source=self._folder.root,
                    path=file.path,
                    interval=str(interval),
                    expected=str(file),
                    found=str(found) if found else "no file",
                )
