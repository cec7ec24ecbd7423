"""Read the file slices of a pinned table: open, remove deleted rows, conform (ICE-6.11–6.19)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import SourceFileDamaged
from tidegate.model.file_slice import DeltaKind
from tidegate.model.ignored import Ignored
from tidegate.model.wire import canonical
from tidegate.physical import ParquetRows
from tidegate.physical.whole_file import WholeFile, is_whole
from tidegate.read.ignored import ignored_deletes
from tidegate.read.merge import MergedPiece
from tidegate.read.pieces import read_pieces
from tidegate.read.removed import FileStates, NewerThan, Removed
from tidegate.source.iceberg.columns.field_ids import FieldIds
from tidegate.source.iceberg.columns.key_columns import KeyColumns
from tidegate.source.iceberg.columns.metadata_columns import UPDATED
from tidegate.source.iceberg.columns.selection import Selection
from tidegate.source.iceberg.columns.slice_details import details_of
from tidegate.source.iceberg.deletes.loading import DeleteLoader
from tidegate.source.iceberg.deletes.positions import Target
from tidegate.source.iceberg.reading.slice_columns import PinnedColumns
from tidegate.source.iceberg.table.paths import mounted_path
from tidegate.source.iceberg.table.whole_files import ManifestSays, open_whole

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    import pyarrow as pa
    from pyiceberg.io import FileIO

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.file_slice import Delta, Deltas, FileSlice
    from tidegate.model.plan import Piece, Pin
    from tidegate.physical import PhysicalRows
    from tidegate.read.merge import ReadOptions
    from tidegate.source.iceberg.reading.slice_columns import SliceColumns


class IcebergReader:
    """The `SliceReader` of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, files: FileIO, source: str, config: IcebergSourceConfig) -> None:
        """Prepare, without opening anything yet.

        Args:
            pin: the table as planning saw it.
            files: where its files are.
            source: the table, for errors.
            config: the pipeline's `source`.
        """
        self._files = files
        self._source = source
        self._config = config
        selection = Selection(pin.details)
        fields = FieldIds(source, selection, config.assume_names)
        self._columns = PinnedColumns(selection, fields)
        self._keys = KeyColumns(source, selection, list(self._columns.own.values()))
        place = f"{pin.identity} {canonical(config.location_rewrite)}"
        self._deletes = DeleteLoader(
            files, source, place, fields, self._keys, config.split.max_delete_memory
        )
        self.ignored = Ignored()
        """Deletes that matched nothing in what was read so far."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the resulting batches."""
        return self._columns.schema

    def batches(self, pieces: Iterable[Piece], options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Read pieces with their deletes; raises as `read_pieces`, `open` and `merge_read`."""
        return read_pieces(pieces, self, options)

    def merge_read(self, file: PhysicalRows, piece: Piece) -> MergedPiece:
        """Return how a piece is read of its open file; raises as `states` and `conforming`."""
        states = self.states(piece.slice)
        self.ignored = self.ignored.plus(ignored_deletes(states, piece, file.rows))
        return MergedPiece(file, piece, self.columns_of(piece).conforming(file.schema), states)

    def alike(self, piece: Piece) -> Hashable:
        """Return the partition; None where a column tells of each file which it is."""
        details = details_of(piece.slice)
        is_own = len(self._columns.own) == len(self._columns.names)
        is_like_others = is_own and "since_sequence" not in details
        return canonical(details["partition"]) if is_like_others else None

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's data file; raises as `open_rows`."""
        rows = open_rows(self._files, piece.slice, self._source)
        length = piece.slice.file_bytes
        ends_there = piece.byte_range is not None and piece.byte_range[1] == length
        if ends_there and any(
            group.offset is not None and group.offset >= length for group in rows.row_groups
        ):
            # The last piece of a file has what lies behind that length, but this one ends there.
            problem = f"expected row groups within {length} bytes, found one behind them"
            with rows:
                raise SourceFileDamaged(path=piece.path, problem=problem)
        return rows

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file; raises as `open` and `conforming`.

        A delete file that applies rules it out, whether or not it matches a row.
        """
        slice = piece.slice
        is_plain = slice.change is None and slice.check is None and not slice.deltas
        path = mounted_path(self._files, piece.path)
        if not is_plain or path is None or "since_sequence" in details_of(slice):
            return None
        if len(self._columns.own) != len(self._columns.names):
            return None
        with self.open(piece) as file:
            if not isinstance(file, ParquetRows) or not is_whole(piece, file):
                return None
            projection = self.columns_of(piece).projection(file.schema)
            if projection.passing != tuple(file.schema.names):
                return None
            return WholeFile(path, file.footer, projection.passing, projection.repeated)

    def columns_of(self, piece: Piece) -> SliceColumns:
        """Return the columns that are read of a piece's file."""
        keys = {
            column.name: column
            for delta in _key_files(piece.slice)
            for column in self._keys.of(delta.field_ids, delta.path)
        }
        return self._columns.of(piece, list(keys.values()))

    def states(self, slice: FileSlice) -> FileStates:
        """Load the deletes of a file in the states that are read.

        Raises:
            TidegateError: as `DeleteLoader.removed`.
        """
        since = details_of(slice).get("since_sequence")
        newer = NewerThan(UPDATED, since) if since is not None else None
        change = slice.change
        if change is None:
            return FileStates(None, self._removed(slice.deltas, slice), newer=newer)
        after = self._removed(change.after, slice)
        before = self._removed(change.before, slice)
        same_keys = _key_paths(change.before or ()) == _key_paths(change.after or ())
        if before is not None and after is not None and same_keys:
            # The reader recognizes by identical objects that only positions differ (ICE-3.11).
            before = replace(before, keys=after.keys, passes=after.passes)
        return FileStates(before, after, kinds=True, newer=newer)

    def _removed(self, deltas: Deltas | None, slice: FileSlice) -> Removed | None:
        if deltas is None:
            return None
        rivals = tuple(details_of(slice).get("rivals", ()))
        target = Target(slice.path, rivals, self._config.path_match == "exact")
        return self._deletes.removed(deltas, target)


def open_rows(files: FileIO, slice: FileSlice, source: str) -> PhysicalRows:
    """Open the data file of a slice; raises as `open_whole`."""
    said = ManifestSays(slice.path, slice.file_format, slice.rows or 0, slice.file_bytes)
    return open_whole(files, said, source)


def _key_files(slice: FileSlice) -> list[Delta]:
    """List the equality delete files of all states."""
    return [
        delta for deltas in slice.delta_lists for delta in deltas if delta.kind is DeltaKind.KEYS
    ]


def _key_paths(deltas: Iterable[Delta]) -> frozenset[str]:
    return frozenset(delta.path for delta in deltas if delta.kind is DeltaKind.KEYS)
