"""Read the file slices of a pinned table: base files, merged with their logs."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import SourceFileDamaged
from tidegate.model.file_slice import DeltaKind, FileSlice
from tidegate.model.ignored_deletes import IgnoredDeletes
from tidegate.model.plan import Piece
from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.physical.arrays import boolean_column, flags
from tidegate.physical.opening import open_rows
from tidegate.read.keyed_merge import StandingRows
from tidegate.read.merge import Conforming, MergedPiece
from tidegate.read.open_piece import damage_named, open_piece
from tidegate.read.pieces import read_pieces
from tidegate.read.removed import WHOLE
from tidegate.source.hudi.merge.records import record_keys, standing_rows
from tidegate.source.hudi.merge.tombstones import Tombstones
from tidegate.source.hudi.reading.change_columns import (
    marked_partial,
    numbered,
    stays_a_row,
    told_apart,
)
from tidegate.source.hudi.reading.deleted_keys import DeletedKeys, Gone, told_by
from tidegate.source.hudi.reading.log_records import EveryBlock, InstantGate, LogRecords
from tidegate.source.hudi.slices.details import (
    CHANGELOG,
    LOG_ONLY,
    OF_CHANGES,
    ONLY_WINDOW,
    details_of,
)
from tidegate.source.hudi.table.columns import (
    COMMIT_TIME,
    SliceColumns,
)
from tidegate.source.hudi.table.promotion import widened
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.named_columns import found_column
from tidegate.source.projection import Projection, Projections

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from tidegate.model.file_slice import Delta
    from tidegate.model.plan import Pin
    from tidegate.physical import PhysicalRows
    from tidegate.physical.arrays import Flags
    from tidegate.physical.whole_file import WholeFile
    from tidegate.read.keyed_merge import KeyedRecords
    from tidegate.read.merge import ReadOptions
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.logs.counting import Gate

_NO_KEYS = pa.nulls(0, pa.string())


class HudiReader:
    """The `SliceReader` of one pin; one per process, used by one thread at a time."""

    def __init__(self, pin: Pin, files: TableFiles, mode: str) -> None:
        """Prepare, without opening anything yet.

        Args:
            pin: the table as planning saw it.
            files: of the table.
            mode: the read mode.
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

    @property
    def schema(self) -> pa.Schema:
        """The schema of the resulting batches."""
        return self._columns.schema

    @property
    def ignored(self) -> IgnoredDeletes:
        """None: a delete of a key that is not there is nothing unusual."""
        return IgnoredDeletes()

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
        names = _present(self._plain, file.schema)
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
        file = self._files.open(self._below(slice.path))
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
        """Read the rows of a piece, and in mode `with_deletes` the keys that are gone."""
        slice = piece.slice
        is_log_only = slice.file_format == LOG_ONLY
        if is_log_only and piece.row_start:
            return  # Its rows were guessed, and cannot be cut: the first part returns all of them.
        details = details_of(slice)
        instants = details.get("instants")
        wanted = self._columns.with_hidden(merging=True, times=instants is not None)
        if is_log_only and instants is not None and self._mode == CHANGELOG:
            yield from self._unmerged(slice, wanted)
            return
        only = frozenset(instants) if instants is not None and self._mode in ONLY_WINDOW else None
        gate = self._gate_of(slice)
        records = self._logs.merged(slice, gate, wanted, only=only)
        tells = self._mode in OF_CHANGES and instants is not None
        telling = self._columns.telling_deletes() if tells else self._columns.keys
        earlier = self._logs.history(slice, gate, telling) if only is None else None
        history = _NO_KEYS if earlier is None else earlier.keys
        records = replace(records, marked=records.marked | _among(records.keys, history))
        standing = StandingRows(records)
        deleted = None
        if tells and piece.row_start == 0:
            # The first part tells of the keys that no part has.
            deleted = DeletedKeys(self._perhaps_gone(slice, earlier), records)
        if not is_log_only:
            yield from self._base(piece, wanted, standing, deleted, history, batch_rows)
        if piece.row_start == 0:
            rest = standing.rest()
            keep = ~rest.deleted
            if instants is not None:
                keep &= rest.marked
            yield rest.rows.filter(pa.array(keep))
            if deleted is not None:
                yield told_by(rest)
                yield deleted.rest()

    def _unmerged(self, slice: FileSlice, wanted: Sequence[Wanted]) -> Iterator[pa.Table | Gone]:
        for records, is_partial in self._logs.unmerged(slice, self._gate_of(slice), wanted):
            stays = stays_a_row(records)
            yield told_by(replace(records, marked=~stays))
            yield marked_partial(records.rows.filter(pa.array(stays)), is_partial=is_partial)

    def _perhaps_gone(self, slice: FileSlice, earlier: KeyedRecords | None) -> Gone:
        """Return keys that were deleted in logs of before, and those of the base file before."""
        found = [Gone(_NO_KEYS, _NO_KEYS)] if earlier is None else [told_by(earlier)]
        for delta in slice.deltas:
            if delta.kind is DeltaKind.PREVIOUS:
                keys = self._keys_of(delta)
                since = details_of(slice).get("removed_by", "")
                found.append(Gone(keys, pa.repeat(since, len(keys))))
        keys, times = (pa.concat_arrays(parts) for parts in zip(*found, strict=True))
        return Gone(keys, times)

    def _keys_of(self, delta: Delta) -> pa.Array:
        piece = Piece(FileSlice(delta.path, delta.file_format, delta.file_bytes), 0, 0)
        with damage_named(delta.path), self.open(piece) as file:
            names = _present(self._columns.keys, file.schema)
            parts = [
                record_keys(self._conform(batch, piece, self._columns.keys), self._columns.keyed_by)
                for _, batch in file.batches(names, 0, file.rows)
            ]
        return pa.concat_arrays([_NO_KEYS, *parts])

    def _base(
        self,
        piece: Piece,
        wanted: Sequence[Wanted],
        standing: StandingRows,
        deleted: DeletedKeys | None,
        history: pa.Array,
        batch_rows: int,
    ) -> Iterator[pa.Table | Gone]:
        instants = details_of(piece.slice).get("instants")
        written = None if instants is None else pa.array(instants, pa.string())
        by = self._columns.keyed_by
        file, located = open_piece(piece, self.open)
        with damage_named(piece.path), file:
            names = _present(wanted, file.schema)
            self._meet(file, piece, standing, deleted, 0, located.row_start)
            for _, batch in file.batches(names, located.row_start, located.row_end, batch_rows):
                rows = self._conform(batch, piece, wanted)
                marks = np.zeros(rows.num_rows, np.bool_)
                if written is not None:
                    marks = _among(rows.column(COMMIT_TIME), written)
                    marks |= _among(record_keys(rows, by), history)
                if self._mode in ONLY_WINDOW and instants is not None:
                    rows, marks = rows.filter(boolean_column(marks)), marks[marks]
                if self._mode == "skip_merge":
                    yield pa.Table.from_batches([rows])
                    continue
                merged = standing.apply(standing_rows(rows, by, marks))
                wanted_rows = None if instants is None else pa.array(merged.marked)
                yield merged.rows if wanted_rows is None else merged.rows.filter(wanted_rows)
                if self._mode in OF_CHANGES and instants is not None:
                    yield told_by(standing.records(merged.removing))
                if deleted is not None:
                    deleted.meet(record_keys(rows, by))
            if located.row_start == 0:
                self._meet(file, piece, standing, deleted, located.row_end, file.rows)

    def _meet(
        self,
        file: PhysicalRows,
        piece: Piece,
        standing: StandingRows,
        deleted: DeletedKeys | None,
        start: int,
        end: int,
    ) -> None:
        """Tell which keys stand in a range of rows that another piece reads (HUDI-P8)."""
        instants = details_of(piece.slice).get("instants")
        if start >= end or self._mode == "skip_merge":
            return
        only = instants if self._mode in ONLY_WINDOW else None
        wanted = self._columns.keys_and_time(with_time=only is not None)
        for _, batch in file.batches(_present(wanted, file.schema), start, end):
            rows = self._conform(batch, piece, wanted)
            if only is not None:
                written = _among(rows.column(COMMIT_TIME), pa.array(only, pa.string()))
                rows = rows.filter(boolean_column(written))
            keys = record_keys(rows, self._columns.keyed_by)
            standing.meet(keys)
            if deleted is not None:
                deleted.meet(keys)

    def _passing(
        self, piece: Piece, found: pa.Table | Gone, options: ReadOptions
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is returned of a piece; deletes pass the filter, as they have only a key."""
        details = details_of(piece.slice)
        since = details.get("gone_since")
        if isinstance(found, pa.Table) and since is not None:
            keys = record_keys(found, self._columns.keyed_by).combine_chunks()
            found = Gone(keys, pa.repeat(since, len(keys)))
        if isinstance(found, Gone):
            made = self._tombstones.rows(details["partition"], *found)
            for batch in made.to_batches(max_chunksize=options.batch_rows):
                yield numbered(batch, details)
            return
        if details.get("only_deletes"):
            return
        names, passing = list(self._columns.names), options.filter
        if CHANGE_TYPE in names:
            found = told_apart(found, is_changelog=self._mode == CHANGELOG)
        for batch in found.select(names).to_batches(max_chunksize=options.batch_rows):
            rows = batch if passing is None else batch.filter(passing.mask(batch))
            if rows.num_rows:
                yield numbered(rows, details)

    def _standing(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        rows = self._conform(batch, piece, self._plain)
        if CHANGE_TYPE not in rows.schema.names:
            return rows
        upserts = told_apart(pa.Table.from_batches([rows]), is_changelog=False)
        return numbered(upserts.combine_chunks().to_batches()[0], details_of(piece.slice))

    def _conform(
        self, batch: pa.RecordBatch, piece: Piece, wanted: Sequence[Wanted]
    ) -> pa.RecordBatch:
        batch = widened(batch, wanted)
        key = {"columns": [column.name for column in wanted]}
        projection = self._projections.get(
            batch.schema,
            key,
            lambda: Projection(wanted, [found_column(it) for it in batch.schema], {}, piece.path),
        )
        return projection.apply(batch, piece.path)

    def _gate_of(self, slice: FileSlice) -> Gate:
        until = details_of(slice).get("until")
        if self._gate is None or until is None:
            return EveryBlock()
        completed, requested = until
        return InstantGate(self._gate["first"], self._gate["done"], (completed, requested))

    def _below(self, path: str) -> str:
        return path.removeprefix(self._files.root).lstrip("/")


def _is_plain(slice: FileSlice) -> bool:
    return not slice.deltas and details_of(slice).keys().isdisjoint({"instants", "gone_since"})


def _present(wanted: Sequence[Wanted], schema: pa.Schema) -> list[str]:
    names = set(schema.names)
    return [column.name for column in wanted if column.name in names]


def _among(values: pa.Array, wanted: pa.Array) -> Flags:
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    return flags(pc.is_in(values, value_set=wanted).fill_null(False))
