"""The files of a directory's windows: the difference between two listings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import DefaultPartitionForeign
from tidegate.model.file_slice import FileSlice
from tidegate.model.partition import DEFAULT_NAME, HIVE_DEFAULT_NAME, Partition
from tidegate.model.plan import WHOLE_FILE, Piece
from tidegate.source.event_bounds import EventUnit
from tidegate.source.files.looks import looked_at
from tidegate.source.files.metadata import FileFacts
from tidegate.source.files.pruning import PartitionPruning
from tidegate.source.files.reader import MODIFIED, PARTITION, TAG, TAIL, open_slice
from tidegate.source.slicing import NarrowFile, Units
from tidegate.source.words import counted, first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import InstantRange
    from tidegate.model.plan import Pin
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.physical import RowGroup
    from tidegate.source.files.folder import Folder
    from tidegate.source.files.footers import Footer, Footers
    from tidegate.source.files.listing import ListedFile, ListingDifference
    from tidegate.source.files.reader import FilesReader, FilesReading

_AT_ONCE = 64
"""Files whose footers are read before it is seen whether they have enough rows."""

_NULL_NAMES = {DEFAULT_NAME, HIVE_DEFAULT_NAME}


class _Checked:
    """Checks the schemas of files before a window is planned; equal ones only once."""

    def __init__(
        self, reading: FilesReader, footers: Footers, event_time: EventColumn | None
    ) -> None:
        """Prepare.

        Args:
            reading: reads the rows.
            footers: of the files.
            event_time: the column whose bounds a footer tells; None: there is none, or directories
                name it.
        """
        self._reading = reading
        self._footers = footers
        self._event_time = event_time
        self._known: dict[pa.Schema, str] = {}

    def footer(self, file: ListedFile) -> Footer:
        """Return what the footer of a file says; raises as `Footers.of`."""
        name = self._event_time.name if self._event_time else None
        return self._footers.of(file, name, self._reading.own)

    def bounds(self, footer: Footer) -> TimeBounds | None:
        """Return the event times of a file; None where its footer does not say."""
        column = self._event_time
        if column is None or column.name not in footer.bounds:
            return None
        counts = EventUnit.of(footer.schema.field(column.name).type, column)
        return counts.between_raw(footer.bounds[column.name]) if counts else None

    def check(self, piece: Piece, schema: pa.Schema) -> None:
        if schema not in self._known:
            self._reading.check(piece, schema)
            self._known[schema] = piece.path

    def narrow(self) -> tuple[NarrowFile, ...]:
        """Return a file for each set of columns that checked files lack."""
        own = set(self._reading.own.names)
        lacks = {path: frozenset(own.difference(it.names)) for it, path in self._known.items()}
        return tuple(NarrowFile(path, lacked) for path, lacked in lacks.items() if lacked)


class ListingSlicing:
    """The `Slicing` of one directory."""

    def __init__(self, folder: Folder, reading: FilesReading) -> None:
        """Prepare.

        Args:
            folder: the directory.
            reading: reads its rows.
        """
        self._folder = folder
        self._reading = reading

    def units(
        self,
        pin: Pin,
        window: InstantRange,
        *,
        whole: bool = False,
        event_time: EventColumn | None = None,
        enough: int | None = None,
    ) -> Units:
        """List the files that arrived between two listings, with row counts from their footers.

        Raises:
            SourceRewritten: a file that was taken in has changed or vanished, and the pipeline says
                `fail`.
            MarkedFilesReplaced: a marker lists files with rows that were taken in, among others.
            ListedFileGone, SourceFileDamaged: a file is not as it was listed.
            SchemaIncompatible: a column of a file cannot be read as the pinned type.
        """
        # A filter that rules out no file may still exclude rows of each; an estimate is no promise.
        is_exact = self._folder.config.read.filter is None and self._folder.format.tells_rows
        enough = enough if is_exact else None
        whole = whole or self._folder.reads_whole
        start = None if whole else window.start_exclusive
        change = self._folder.compared(start, window.end_inclusive)
        files = self._unpruned(pin, change.added)
        # What directories name wins over a column of the files, of which footers tell.
        is_named = event_time is not None and event_time.name in self._folder.config.partition_by
        checked = self._checked(pin, None if is_named else event_time)
        pieces = self._filled(files, checked, enough)
        pruned = len(change.added) - len(files)
        notes = self._notes(window, change, pruned, whole=whole)
        return Units(pieces, notes, narrow=checked.narrow())

    def pieces(self, pin: Pin, files: Sequence[ListedFile]) -> tuple[Piece, ...]:
        """Return listed files whole, without those that the filter rules out; raises as `units`."""
        return self._filled(self._unpruned(pin, files), self._checked(pin, None))

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a file."""
        with open_slice(self._folder.files, piece.slice, self._folder.format) as file:
            return file.row_groups

    def replaced_columns(self, pin: Pin) -> tuple[str, ...]:
        """Return none: windows add rows, or replace everything."""
        del pin
        return ()

    def _unpruned(
        self, pin: Pin, files: Sequence[ListedFile]
    ) -> Sequence[tuple[ListedFile, Partition]]:
        """Return the files that the filter may find rows in, with what their directories name."""
        placed = [(file, self._partition(file.path)) for file in files]
        pruning = PartitionPruning(self._folder.config, self._reading.schema(pin))
        if pruning.asks_files:
            root = self._folder.root
            facts = [
                (partition, FileFacts(f"{root}/{file.path}", file.size, file.modified))
                for file, partition in placed
            ]
            passes = pruning.passing(facts)
            return [item for item, is_kept in zip(placed, passes, strict=True) if is_kept]
        kept = pruning.keep({partition for _, partition in placed})
        return [item for item in placed if item[1] in kept]

    def _checked(self, pin: Pin, event_time: EventColumn | None) -> _Checked:
        return _Checked(self._reading.reader(pin), self._folder.footers, event_time)

    def _filled(
        self,
        files: Sequence[tuple[ListedFile, Partition]],
        checked: _Checked,
        enough: int | None = None,
    ) -> tuple[Piece, ...]:
        """Return the files that have rows; no more of them than have `enough`."""
        partitions = dict(files)
        listed = list(partitions)
        step = len(listed) if enough is None else _AT_ONCE
        pieces: list[Piece] = []
        for at in range(0, len(listed), max(step, 1)):
            found = looked_at(
                self._folder.root,
                listed[at : at + step],
                lambda file: self._piece(file, partitions[file], checked),
            )
            pieces += [piece for piece in found if piece.rows > 0]
            if enough is not None and sum(piece.rows for piece in pieces) >= enough:
                break
        return tuple(pieces)

    def _piece(self, file: ListedFile, partition: Partition, checked: _Checked) -> Piece:
        footer = checked.footer(file)
        slice = FileSlice(
            f"{self._folder.root}/{file.path}",
            file_bytes=file.size,
            rows=footer.rows,
            # One offset says one row group, which need not be read again to be cut.
            offsets=(0,) if footer.groups == 1 else (),
            file_format=self._folder.format.name,
            details=_details(file, partition),
        )
        piece = Piece(slice, footer.rows, file.size, event_times=checked.bounds(footer))
        if not self._folder.format.tells_rows:
            piece = replace(piece, byte_range=WHOLE_FILE)
        checked.check(piece, footer.schema)
        return piece

    def _partition(self, path: str) -> Partition:
        names = tuple(self._folder.config.partition_by)
        if not names:
            return Partition(())
        folder = path.rpartition("/")[0]
        found = Partition.parse(folder, names, self._folder.config.default_partition_name)
        for _, value in found.values:
            if value in _NULL_NAMES and value != self._folder.config.default_partition_name:
                raise DefaultPartitionForeign(path=folder, value=value)
        return found

    def _notes(
        self, window: InstantRange, change: ListingDifference, pruned: int, *, whole: bool
    ) -> tuple[str, ...]:
        skipped = self._folder.store.head(window.end_inclusive, self._folder.root).skipped
        gone = self._folder.listing(window.end_inclusive).lost if whole else ()
        notes: list[str] = []
        start = window.start_exclusive
        if whole and start is not None:
            anew = self._folder.difference(start, window.end_inclusive)
            notes += _read_anew(anew, refused=self._folder.refuses_changes)
        if gone:
            are, their = ("is", "its") if len(gone) == 1 else ("are", "their")
            notes.append(
                f"did not read {counted(len(gone))} that came earlier and {are} gone: "
                f"{first_few([file.path for file in gone])}; what is read whole is left without "
                f"{their} rows"
            )
        if change.disturbed:
            notes.append(_ignored(change))
        if change.returned:
            notes.append(
                f"did not read {counted(len(change.returned))} again that came back unchanged: "
                f"{first_few([file.path for file in change.returned])}; rebuild partitions that "
                "were rebuilt in the meantime"
            )
        if pruned:
            notes.append(f"the filter ruled out {counted(pruned)} by partition")
        if skipped:
            paths = "path that is no partition"
            if len(skipped) > 1:
                paths = "paths that are no partitions"
            notes.append(f"skipped {len(skipped)} {paths}: {first_few(skipped)}")
        return tuple(notes)


def _details(file: ListedFile, partition: Partition) -> dict[str, Any]:
    """Return what a task needs to know of a file; as early versions did, if its end is unknown."""
    tail = {TAIL: file.tail} if file.tail else {}
    tag = {TAG: file.tag} if file.tag else {}
    return {MODIFIED: file.modified, **tail, **tag, PARTITION: dict(partition.values)}


def _read_anew(change: ListingDifference, *, refused: bool) -> Iterator[str]:
    """Name files that a rebuild found otherwise than they were taken in.

    If these are refused, it reads all of their partitions.
    """
    if named := change.named:
        they, them = ("it stands", "it") if len(named) == 1 else ("they stand", "them")
        said = f"took {counted(len(named))} as {they} now: {first_few(named)}"
        if not refused:
            said += (
                f". `on_changed_file: ignore` leaves what was read of {them} before in partitions "
                "that are not rebuilt"
            )
        yield said


def _ignored(change: ListingDifference) -> str:
    """Name files that changed or are gone, and the command that reads what stands there now."""
    named = replace(change, returned=()).named
    kinds = {"changed" if now else "vanished" for _, now in change.disturbed}
    how = " or ".join(sorted(kinds))
    return (
        f"ignored {len(named)} {how} {'file' if len(named) == 1 else 'files'}: {first_few(named)}; "
        "the rows that were read of them before stay. To publish what the source has now, run "
        "`tidegate rebuild PIPELINE PARTITION` for the partitions of their rows"
    )
