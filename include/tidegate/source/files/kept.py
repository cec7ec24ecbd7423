"""The history that Tidegate keeps of a directory: its listings."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import HistoryChanged, StateFileDamaged, StateFileLost
from tidegate.source.files.listing import ListingDifference, came
from tidegate.source.named_columns import decode_schema, encode_schema
from tidegate.source.reading import pinned_columns
from tidegate.source.timeline import ChangedFiles
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tidegate.errors import TerminalError
    from tidegate.model.instant import DataInterval, Instant, InstantRange
    from tidegate.model.plan import Pin
    from tidegate.source.files.folder import Folder
    from tidegate.source.files.slicing import ListingSlicing


class KeptListings:
    """The `KeptHistory` of one directory."""

    def __init__(self, folder: Folder, slicing: ListingSlicing) -> None:
        """Prepare.

        Args:
            folder: the directory.
            slicing: opens its files.
        """
        self._folder = folder
        self._slicing = slicing

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

    def changed(self, pin: Pin, checkpoint: Instant, columns: Collection[str]) -> ChangedFiles:
        """Compare the files of a pin with those that were taken in.

        Raises:
            ListedFileGone, SourceFileDamaged: a file is not as it was listed.
            SchemaIncompatible: a column of a file cannot be read as the pinned type.
        """
        change = ListingDifference((), (), ())
        is_same = pin.head is None or pin.head.id == checkpoint.id
        if pin.head is not None and not is_same:
            change = self._folder.difference(checkpoint, pin.head)
            change = change if self._folder.refuses_changes else change.unsettled
        narrow = _narrowed(pin, columns)
        standing = [now for _, now in change.disturbed if now is not None]
        standing += [*change.returned, *change.replacing]
        return ChangedFiles(
            paths=frozenset(f"{self._folder.root}/{path}" for path in change.aliases),
            said=first_few(change.named),
            standing=self._slicing.pieces(narrow, standing),
            pin=narrow,
        )

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


def _narrowed(pin: Pin, columns: Collection[str]) -> Pin:
    """Return a pin that reads some of the columns."""
    schema = decode_schema(pin.details["schema"])
    schema = pa.schema([column for column in schema if column.name in columns])
    return replace(pin, schema=pinned_columns(schema), details={"schema": encode_schema(schema)})
