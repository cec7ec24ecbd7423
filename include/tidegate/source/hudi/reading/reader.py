"""Read the file slices of a pinned table: base files, merged with their logs."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.errors import SourceFileDamaged
from tidegate.model.file_slice import DeltaKind, FileSlice
from tidegate.model.ignored import Ignored
from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.physical.arrays import (
    boolean_column,
    repeated_text,
)
from tidegate.physical.opening import open_rows
from tidegate.read.merge import Conforming, MergedPiece
from tidegate.read.pieces import read_pieces
from tidegate.read.removed import WHOLE
from tidegate.source.hudi.merge.records import record_keys
from tidegate.source.hudi.merge.tombstones import Tombstones
from tidegate.source.hudi.reading.change_columns import (
    marked_partial,
    numbered,
    stays_a_row,
    told_apart,
)
from tidegate.source.hudi.reading.deleted_keys import Gone, in_order, told_by
from tidegate.source.hudi.reading.folder_values import FolderValues, SomeRows
from tidegate.source.hudi.reading.log_records import EveryBlock, InstantGate, LogRecords
from tidegate.source.hudi.reading.logged_changes import LoggedChanges
from tidegate.source.hudi.reading.piece_merge import PieceMerger, present, share_of
from tidegate.source.hudi.slices.details import (
    CHANGELOG,
    LOG_ONLY,
    REPLACING,
    details_of,
)
from tidegate.source.hudi.table.columns import (
    SliceColumns,
)
from tidegate.source.hudi.table.promotion import cast_of_orc, cast_to
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.named_columns import found_column
from tidegate.source.projection import Projection, Projections

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from tidegate.model.plan import Piece, Pin
    from tidegate.physical import PhysicalRows
    from tidegate.physical.whole_file import WholeFile
    from tidegate.read.merge import ReadOptions
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.logs.counting import Gate


class HudiReader:
    """The `SliceReader` of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, files: TableFiles, mode: str, memory: int) -> None:
        """Prepare, without opening anything yet.

        Args:
            pin: the table as planning saw it.
            files: of the table.
            mode: the read mode.
            memory: bytes for what the rows of a slice are merged with (HUDI-M18).
        """
        self._files = files
        self._mode = mode
        self._columns = SliceColumns(pin.details)
        self._gate = pin.details.get("gate")
        self._logs = LogRecords(files, self._columns.keyed_by)
        self._projections = Projections()
        self._plain = self._columns.with_hidden(merging=False, times=False)
        properties = TableProperties(pin.identity, pin.details.get("properties", {}))
        self._tombstones = Tombstones(self._columns, properties)
        is_by_folder = mode == REPLACING
        self._folders = FolderValues(self._columns.table, properties) if is_by_folder else None
        self._changes = LoggedChanges(files, self._columns, properties)
        self._merger = PieceMerger(
            self._columns, mode, self._logs, self.open, self._conform, memory
        )

    @property
    def schema(self) -> pa.Schema:
        """The schema of the resulting batches."""
        return self._columns.schema

    @property
    def ignored(self) -> Ignored:
        """Damaged spans of logs; a delete of a key that is not there is nothing unusual."""
        return Ignored(damaged=dict(self._logs.damaged))

    def batches(self, pieces: Iterable[Piece], options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Read pieces, merged with their logs; raises as `read_pieces` and `LogRecords.merged`."""
        for is_plain, run in groupby(pieces, lambda piece: _is_plain(piece.slice)):
            if is_plain:
                yield from read_pieces(run, self, options)
                continue
            for piece in run:
                for found in self._merged(piece, options.batch_rows):
                    yield from self._passing(piece, found, options)

    def merge_read(self, file: PhysicalRows, piece: Piece) -> MergedPiece:
        """Return how a plain piece is read of its open file."""
        names = present(self._plain, file.schema)
        conforming = Conforming(names, lambda batch, _: self._standing(batch, piece))
        return MergedPiece(file, piece, conforming, WHOLE)

    def alike(self, piece: Piece) -> Hashable:
        """Return the same for all: the columns of a file are all in the file."""
        del piece
        return "base file"

    def open(self, piece: Piece) -> PhysicalRows:
        """Open the piece's base file.

        Raises:
            SourceFileDamaged: it has another length than planned (HUDI-P4).
        """
        slice = piece.slice
        file = self._files.open(self._files.below(slice.path))
        found = file.size()
        if found != slice.file_bytes:
            file.close()
            problem = f"expected {slice.file_bytes} bytes, found {found}"
            raise SourceFileDamaged(path=slice.path, problem=problem)
        return open_rows(file, slice.file_format)

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Look at the piece's file; its columns of the writer keep it from being copied."""
        del piece
        return None

    def _merged(self, piece: Piece, batch_rows: int) -> Iterator[pa.Table | Gone]:
        """Read the rows of a piece, and in modes of changes the keys that are gone."""
        slice = piece.slice
        for path in details_of(slice).get("short", ()):
            # Wherever it was cut: nothing in it tells, if that was between two blocks.
            self._logs.damaged.setdefault(path, 1)
        if any(delta.kind is DeltaKind.CHANGES for delta in slice.deltas):
            if piece.row_start == 0:
                yield from self._changes.rows(slice)
        elif self._mode == CHANGELOG and _is_of_a_write(slice):
            yield from self._unmerged(piece)
        else:
            yield from self._merger.merged(piece, self._gate_of(slice), batch_rows)

    def _unmerged(self, piece: Piece) -> Iterator[pa.Table | Gone]:
        slice, share = piece.slice, share_of(piece)
        wanted = self._columns.with_hidden(merging=True, times=True)
        for found, is_partial in self._logs.unmerged(slice, self._gate_of(slice), wanted):
            records = found
            if share is not None:
                records = found.take(np.flatnonzero(share.holds(found.keys)))
            stays = stays_a_row(records)
            yield told_by(replace(records, marked=~stays))
            kept = boolean_column(stays)
            rows = records.rows.filter(kept)
            if is_partial:
                folder = details_of(slice)["partition"]
                rows = self._tombstones.completed(rows, folder, records.keys.filter(kept))
            yield marked_partial(rows, is_partial=is_partial)

    def _passing(
        self, piece: Piece, found: pa.Table | Gone, options: ReadOptions
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is returned of a piece; deletes pass the filter, as they have only a key."""
        details = details_of(piece.slice)
        since = details.get("gone_since")
        if isinstance(found, pa.Table) and since is not None:
            keys = record_keys(found, self._columns.keyed_by).combine_chunks()
            found = Gone(keys, repeated_text(since, len(keys)))
        found = in_order(found, details.get("times", {}))
        if isinstance(found, Gone):
            made = self._tombstones.rows(details["partition"], *found)
            for batch in made.to_batches(max_chunksize=options.batch_rows):
                yield numbered(batch, details)
            return
        if details.get("only_deletes"):
            return
        found = self._placed(found, details["partition"])
        names, passing = list(self._columns.names), options.filter
        if CHANGE_TYPE in names:
            otherwise = RowKind.INSERT if details.get("only_inserts") else RowKind.UPSERT
            is_changelog = self._mode == CHANGELOG
            found = told_apart(found, is_changelog=is_changelog, otherwise=otherwise)
        for batch in found.select(names).to_batches(max_chunksize=options.batch_rows):
            rows = batch if passing is None else batch.filter(passing.mask(batch))
            if rows.num_rows:
                yield numbered(rows, details)

    def _standing(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        rows = self._conform(batch, piece, self._plain)
        rows = self._placed(rows, details_of(piece.slice)["partition"])
        if CHANGE_TYPE not in rows.schema.names:
            return rows
        upserts = told_apart(pa.Table.from_batches([rows]), is_changelog=False)
        return numbered(upserts.combine_chunks().to_batches()[0], details_of(piece.slice))

    def _placed(self, rows: SomeRows, folder: str) -> SomeRows:
        return self._folders.given(rows, folder) if self._folders else rows

    def _conform(
        self, batch: pa.RecordBatch, piece: Piece, wanted: Sequence[Wanted]
    ) -> pa.RecordBatch:
        format, path = piece.slice.file_format, piece.path
        cast = cast_of_orc if format == "orc" else cast_to
        projection = self._projections.get(
            batch.schema,
            {"columns": [column.name for column in wanted], "format": format},
            lambda: Projection(wanted, [found_column(it) for it in batch.schema], {}, path, cast),
        )
        return projection.apply(batch, piece.path)

    def _gate_of(self, slice: FileSlice) -> Gate:
        until = details_of(slice).get("until")
        if self._gate is None or until is None:
            return EveryBlock()
        completed, requested = until
        return InstantGate(self._gate["first"], self._gate["done"], (completed, requested))


def _is_of_a_write(slice: FileSlice) -> bool:
    """Return whether a slice is the log of one write; without instants it is part of a state."""
    return slice.file_format == LOG_ONLY and "instants" in details_of(slice)


def _is_plain(slice: FileSlice) -> bool:
    return not slice.deltas and details_of(slice).keys().isdisjoint({"instants", "gone_since"})
