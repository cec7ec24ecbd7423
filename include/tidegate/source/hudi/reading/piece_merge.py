"""Merge pieces with the logs of their slices, in memory, or in local files if the logs are large.

Which of both it is changes the order of rows, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.model.file_slice import DeltaKind, FileSlice
from tidegate.model.plan import Piece
from tidegate.physical.arrays import repeated_text
from tidegate.read.key_share import KeyShare
from tidegate.read.keyed_merge import KeyedRecords
from tidegate.read.keyed_spill import KeyedSpill
from tidegate.read.open_piece import damage_named, open_piece
from tidegate.source.hudi.merge.records import record_keys
from tidegate.source.hudi.reading.log_records import Part
from tidegate.source.hudi.reading.slice_merge import Kind, Loaded, SliceMerge
from tidegate.source.hudi.slices.details import LOG_ONLY, OF_CHANGES, ONLY_WINDOW, details_of
from tidegate.source.hudi.table.columns import COMMIT_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tidegate.model.file_slice import Delta
    from tidegate.physical import PhysicalRows
    from tidegate.source.column_kernels import Wanted
    from tidegate.source.hudi.logs.counting import Gate
    from tidegate.source.hudi.reading.deleted_keys import Gone
    from tidegate.source.hudi.reading.log_records import LogRecords
    from tidegate.source.hudi.table.columns import SliceColumns

_MOST_BUCKETS = 1024
_COPIES = 2
"""Records are held as decoded and as merged."""
_BEFORE, _OWN, _AFTER = "before", "own", "after"
"""Rows of the base file: those of the piece, and those that other pieces return."""


class _Step(NamedTuple):
    """Rows of a base file, in the order of the file."""

    place: str
    rows: pa.RecordBatch


class PieceMerger:
    """Merges the pieces of one pin; keeps what it loaded for the next piece of the same slice."""

    def __init__(
        self,
        columns: SliceColumns,
        mode: str,
        logs: LogRecords,
        open_base: Callable[[Piece], PhysicalRows],
        conform: Callable[[pa.RecordBatch, Piece, Sequence[Wanted]], pa.RecordBatch],
        memory: int,
    ) -> None:
        """Prepare.

        Args:
            columns: that are read.
            mode: the read mode.
            logs: decodes logs.
            open_base: opens the base file of a piece.
            conform: gives the rows of a base file the columns that are wanted.
            memory: bytes for what rows are merged with; more goes to local files.
        """
        self._columns = columns
        self._mode = mode
        self._logs = logs
        self._open = open_base
        self._conform = conform
        self._memory = memory
        self._last: tuple[object, Loaded] | None = None

    def merged(self, piece: Piece, gate: Gate, batch_rows: int) -> Iterator[pa.Table | Gone]:
        """Read the rows of a piece, and in modes of changes the keys that are gone.

        The first piece of a base file also returns the records that met no row of it.
        """
        tells = self._tells(piece.slice) and (piece.row_start == 0 or _is_log_only(piece.slice))
        key = (piece.slice, share_of(piece))
        if self._last is not None and self._last[0] == key:
            loaded = self._last[1]
            if loaded.perhaps_gone is not None or not tells:
                yield from self._in_memory(piece, loaded, batch_rows, tells=tells)
                return
        self._last = None
        held: list[tuple[Kind, Part]] = []
        size = 0
        parts = self._parts(piece, gate, tells=tells)
        for kind, part in parts:
            held.append((kind, part))
            size += part.records.size_bytes
            if size * _COPIES > self._memory:
                buckets = self._buckets(piece.slice, size, [part for _, part in held])
                yield from self._in_files(piece, chain(_emptied(held), parts), buckets, batch_rows)
                return
        loaded = self._loaded(piece.slice, ((kind, part.records) for kind, part in held), tells)
        self._last = key, loaded
        yield from self._in_memory(piece, loaded, batch_rows, tells=tells)

    def _in_memory(
        self, piece: Piece, loaded: Loaded, batch_rows: int, *, tells: bool
    ) -> Iterator[pa.Table | Gone]:
        if not tells:
            loaded = replace(loaded, perhaps_gone=None)
        merge = self._merge(piece.slice, loaded)
        for place, rows in self._steps(piece, batch_rows):
            if place == _OWN:
                yield from merge.rows(rows)
            else:
                merge.meet(rows)
        if _returns_rest(piece):
            yield from merge.rest()

    def _in_files(
        self,
        piece: Piece,
        parts: Iterable[tuple[Kind, Part]],
        buckets: int,
        batch_rows: int,
    ) -> Iterator[pa.Table | Gone]:
        tells = self._tells(piece.slice) and _returns_rest(piece)
        by = self._columns.keyed_by
        with KeyedSpill(buckets) as spill:
            for kind, part in parts:
                spill.add_records(kind, part.records)
            for place, rows in self._steps(piece, batch_rows):
                spill.add(place, pa.Table.from_batches([rows]), record_keys(rows, by))
            for bucket in range(buckets):
                records = ((kind, found) for kind in Kind for found in spill.records(kind, bucket))
                merge = self._merge(piece.slice, self._loaded(piece.slice, records, tells))
                for rows in _batches(spill.read(_BEFORE, bucket), batch_rows):
                    merge.meet(rows)
                for rows in _batches(spill.read(_OWN, bucket), batch_rows):
                    yield from merge.rows(rows)
                for rows in _batches(spill.read(_AFTER, bucket), batch_rows):
                    merge.meet(rows)
                if _returns_rest(piece):
                    yield from merge.rest()

    def _merge(self, slice: FileSlice, loaded: Loaded) -> SliceMerge:
        instants = details_of(slice).get("instants")
        return SliceMerge(loaded, self._columns.keyed_by, self._mode, instants)

    def _loaded(
        self, slice: FileSlice, parts: Iterable[tuple[Kind, KeyedRecords]], tells: bool
    ) -> Loaded:
        found: dict[Kind, list[KeyedRecords]] = {kind: [] for kind in Kind}
        for kind, records in parts:
            found[kind].append(records)
        schema = pa.schema([(column.name, column.type) for column in self._wanted(slice)])
        return Loaded.of(found, schema, tells_deletes=tells, tells_times=self._tells(slice))

    def _parts(self, piece: Piece, gate: Gate, *, tells: bool) -> Iterator[tuple[Kind, Part]]:
        """Decode what rows are merged with: only keys of the piece's share."""
        slice, share = piece.slice, share_of(piece)
        for kind, part in self._all_parts(slice, gate, tells=tells):
            if share is None:
                yield kind, part
            else:
                kept = np.flatnonzero(share.holds(part.records.keys))
                yield kind, part._replace(records=part.records.take(kept))

    def _all_parts(
        self, slice: FileSlice, gate: Gate, *, tells: bool
    ) -> Iterator[tuple[Kind, Part]]:
        instants = details_of(slice).get("instants")
        only = frozenset(instants) if instants is not None and self._only_window else None
        # Without a base row to merge with, the first window of `skip_merge` is no exception.
        alone = only is not None or self._mode == "skip_merge"
        for part in self._logs.parts(slice, gate, self._wanted(slice), only=only, alone=alone):
            yield Kind.RECORD, part
        if only is None:
            columns = self._columns
            telling = columns.telling_deletes() if self._tells(slice) else columns.keys
            for kind in (Kind.HISTORY, Kind.MOVED):
                for part in self._logs.history(slice, DeltaKind(kind), gate, telling):
                    yield kind, part
        if tells:
            since = details_of(slice).get("removed_by", "")
            for delta in slice.deltas:
                if delta.kind is DeltaKind.PREVIOUS:
                    yield from ((Kind.PREVIOUS, part) for part in self._previous(delta, since))

    def _previous(self, delta: Delta, since: str) -> Iterator[Part]:
        """Read the keys of the base file of before, as deletes of an instant."""
        piece = Piece(FileSlice(delta.path, delta.file_format, delta.file_bytes), 0, 0)
        wanted = self._columns.keys
        with damage_named(delta.path), self._open(piece) as file:
            for _, batch in file.batches(present(wanted, file.schema), 0, file.rows):
                keys = record_keys(self._conform(batch, piece, wanted), self._columns.keyed_by)
                every = np.ones(len(keys), np.bool_)
                times = repeated_text(since, len(keys))
                rows = pa.Table.from_arrays([times], names=[COMMIT_TIME])
                yield Part(
                    KeyedRecords(rows, keys, deleted=every, marked=every),
                    delta.file_bytes * len(keys) // max(1, file.rows),
                )

    def _steps(self, piece: Piece, batch_rows: int) -> Iterator[_Step]:
        """Read the base file: the rows of the piece, and of others what tells which keys stand."""
        if _is_log_only(piece.slice):
            return
        wanted = self._wanted(piece.slice)
        instants = details_of(piece.slice).get("instants")
        keys = self._columns.keys_and_time(with_time=self._only_window and instants is not None)
        file, located = open_piece(piece, self._open)
        start, end = located.row_start, located.row_end
        ranges = [(_OWN, wanted, start, end)]
        if self._mode != "skip_merge":
            ranges.insert(0, (_BEFORE, keys, 0, start))
            if start == 0:
                ranges.append((_AFTER, keys, end, file.rows))
        with damage_named(piece.path), file:
            for place, columns, first, last in ranges:
                if first < last:
                    names = present(columns, file.schema)
                    for _, batch in file.batches(names, first, last, batch_rows):
                        yield _Step(place, self._conform(batch, piece, columns))

    def _wanted(self, slice: FileSlice) -> tuple[Wanted, ...]:
        is_window = details_of(slice).get("instants") is not None
        return self._columns.with_hidden(merging=True, times=is_window)

    def _tells(self, slice: FileSlice) -> bool:
        return self._mode in OF_CHANGES and details_of(slice).get("instants") is not None

    @property
    def _only_window(self) -> bool:
        return self._mode in ONLY_WINDOW

    def _buckets(self, slice: FileSlice, size: int, parts: Sequence[Part]) -> int:
        """Return how many buckets are small enough, if what follows is like what was decoded."""
        kinds = {DeltaKind.LOG, DeltaKind.HISTORY, DeltaKind.MOVED, DeltaKind.PREVIOUS}
        stored = sum(delta.file_bytes for delta in slice.deltas if delta.kind in kinds)
        read = max(1, sum(part.stored_bytes for part in parts))
        expected = size * max(1.0, stored / read)
        return min(_MOST_BUCKETS, 1 + int(_COPIES * _COPIES * expected / max(1, self._memory)))


def share_of(piece: Piece) -> KeyShare | None:
    """Return the keys that a part of a slice without a base file reads; None: all (HUDI-P7)."""
    numbers = details_of(piece.slice).get("numbers", 1)
    if not _is_log_only(piece.slice) or piece.rows >= numbers:
        return None
    return KeyShare(numbers, piece.row_start, piece.row_start + piece.rows)


def present(wanted: Sequence[Wanted], schema: pa.Schema) -> list[str]:
    """Return the names of the wanted columns that a file has."""
    names = set(schema.names)
    return [column.name for column in wanted if column.name in names]


def _is_log_only(slice: FileSlice) -> bool:
    return slice.file_format == LOG_ONLY


def _returns_rest(piece: Piece) -> bool:
    """Return whether a piece returns the records that met no row; each share has its own."""
    return piece.row_start == 0 or _is_log_only(piece.slice)


def _emptied(held: list[tuple[Kind, Part]]) -> Iterator[tuple[Kind, Part]]:
    """Yield what a list has, which holds it no longer."""
    held.reverse()
    while held:
        yield held.pop()


def _batches(tables: Iterable[pa.Table], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Put small tables together."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= batch_rows:
            yield _one(held)
            held = []
    if held:
        yield _one(held)


def _one(tables: Sequence[pa.Table]) -> pa.RecordBatch:
    (batch,) = pa.concat_tables(tables).combine_chunks().to_batches()
    return batch
