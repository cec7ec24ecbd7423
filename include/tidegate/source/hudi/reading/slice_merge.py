"""Merge the rows of a slice with what was loaded of its logs; opens nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import boolean_column, text_column, where_true, whole
from tidegate.read.keyed_merge import StandingRows, newest_of_each_key
from tidegate.source.hudi.merge.records import joined_records, record_keys, standing_rows
from tidegate.source.hudi.reading.deleted_keys import DeletedKeys, Gone, latest, told_by
from tidegate.source.hudi.slices.details import OF_CHANGES, ONLY_WINDOW
from tidegate.source.hudi.table.columns import COMMIT_TIME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tidegate.physical.arrays import Flags
    from tidegate.read.keyed_merge import KeyedRecords
    from tidegate.source.hudi.table.columns import KeyedBy


class Kind(StrEnum):
    """What is loaded before rows are merged with it."""

    RECORD = "record"
    """Log records of the slice."""
    HISTORY = "history"
    """Records of the window that were merged into base files since."""
    MOVED = "moved"
    """Such records in slices whose rows were clustered into this one; what they deleted is told
    there."""
    PREVIOUS = "previous"
    """Keys of the base file that stood before the window, as deletes."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """What the rows of a slice are merged with."""

    records: KeyedRecords
    """One per key."""
    history: pa.Array
    """Keys of records that were merged into base files since."""
    perhaps_gone: Gone | None
    """Keys that the window deleted if no row has them; None if deletes are not told."""
    written: tuple[pa.Array, pa.Array] | None
    """Keys and times of the window's records; None if rows keep the times that they have."""

    @classmethod
    def of(
        cls,
        parts: Mapping[Kind, Sequence[KeyedRecords]],
        schema: pa.Schema,
        *,
        tells_deletes: bool,
        tells_times: bool,
    ) -> Loaded:
        """Merge log records among themselves.

        Args:
            parts: what was loaded, in its order.
            schema: of the records of the logs.
            tells_deletes: whether deleted keys are returned.
            tells_times: whether rows are returned with the times of the window.
        """
        records = newest_of_each_key(joined_records(parts[Kind.RECORD], schema))
        earlier = [*parts[Kind.HISTORY], *parts[Kind.MOVED]]
        history = _keys(earlier)
        gone = written = None
        if tells_deletes:
            told = (*parts[Kind.HISTORY], *parts[Kind.PREVIOUS])
            gone = Gone(*_joined(told_by(it) for it in told))
        if tells_times:
            written = _joined(_written_by(it) for it in (*parts[Kind.RECORD], *earlier))
        marked = records.marked | among(records.keys, history)
        return cls(replace(records, marked=marked), history, gone, written)


class SliceMerge:
    """Merges the rows of a slice, batch after batch, in the order of the file."""

    def __init__(
        self, loaded: Loaded, by: KeyedBy, mode: str, instants: Collection[str] | None
    ) -> None:
        """Prepare.

        Args:
            loaded: what rows are merged with.
            by: how rows are keyed.
            mode: the read mode.
            instants: of the window; None: the whole state is read.
        """
        self._by = by
        self._skips = mode == "skip_merge"
        self._only = mode in ONLY_WINDOW and instants is not None
        self._tells = mode in OF_CHANGES and instants is not None
        self._written = None if instants is None else text_column(sorted(instants))
        self._loaded = loaded
        self._standing = StandingRows(loaded.records)
        self._deleted = None
        if loaded.perhaps_gone is not None:
            self._deleted = DeletedKeys(loaded.perhaps_gone, loaded.records)

    def meet(self, rows: pa.RecordBatch) -> None:
        """Note that these rows stand, and that another piece returns them (HUDI-P8)."""
        if self._only:
            rows = rows.filter(boolean_column(self._of_window(rows)))
        keys = record_keys(rows, self._by)
        self._standing.meet(keys)
        if self._deleted is not None:
            self._deleted.meet(keys)

    def rows(self, rows: pa.RecordBatch) -> Iterator[pa.Table | Gone]:
        """Yield what becomes of rows of the base file, and the keys of those that are deleted."""
        marks = np.zeros(rows.num_rows, np.bool_)
        if self._written is not None:
            marks = self._of_window(rows) | among(record_keys(rows, self._by), self._loaded.history)
        if self._only:
            rows, marks = rows.filter(boolean_column(marks)), marks[marks]
        if self._skips:
            yield pa.Table.from_batches([rows])
            return
        merged = self._standing.apply(standing_rows(rows, self._by, marks))
        if self._written is None:
            yield merged.rows
        else:
            yield self._timed(merged.rows.filter(boolean_column(merged.marked)))
        if self._tells:
            yield told_by(self._standing.records(merged.removing))
        if self._deleted is not None:
            self._deleted.meet(record_keys(rows, self._by))

    def _timed(self, rows: pa.Table) -> pa.Table:
        """Return changed rows with the times by which a feed of changes is put in order (HUDI-R6).

        A row that a record of the window changed although it lost has, in Hudi, the time of an
        earlier write: one that is back after its delete, or took a column from that record. Here
        it has the time of the last record of its key.
        """
        if self._times is None or not rows.num_rows:
            return rows
        assert self._written is not None
        times = whole(rows.column(COMMIT_TIME))
        earlier = ~among(times, self._written)
        if not earlier.any():
            return rows
        (batch,) = rows.filter(boolean_column(earlier)).combine_chunks().to_batches()
        own = batch.column(COMMIT_TIME)
        keys, last = self._times
        found = pc.index_in(record_keys(batch, self._by), value_set=keys)
        late = pc.coalesce(last.take(found), own)
        made = pc.replace_with_mask(times, boolean_column(earlier), late)
        place = rows.column_names.index(COMMIT_TIME)
        return rows.set_column(place, rows.schema.field(place), made)

    @cached_property
    def _times(self) -> tuple[pa.Array, pa.Array] | None:
        """The last time of each key of the window's records; found when first asked for."""
        if self._loaded.written is None or self._written is None:
            return None
        keys, times = self._loaded.written
        own = boolean_column(among(times, self._written))
        return latest(keys.filter(own), times.filter(own))

    def rest(self) -> Iterator[pa.Table | Gone]:
        """Yield the records that met no row, and the keys that are gone."""
        rest = self._standing.rest()
        keep = ~rest.deleted
        if self._written is not None:
            keep &= rest.marked
        left = rest.rows.filter(boolean_column(keep))
        yield left if self._written is None else self._timed(left)
        if self._deleted is not None:
            yield told_by(rest)
            yield self._deleted.rest()

    def _of_window(self, rows: pa.RecordBatch) -> Flags:
        assert self._written is not None
        return among(rows.column(COMMIT_TIME), self._written)


def among(values: pa.Array, wanted: pa.Array) -> Flags:
    """Return which values are among others."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    return where_true(pc.is_in(values, value_set=wanted))


def _written_by(records: KeyedRecords) -> tuple[pa.Array, pa.Array]:
    """Return keys and times of the records that may be of the window."""
    own = boolean_column(records.marked)
    return records.keys.filter(own), whole(records.rows.column(COMMIT_TIME)).filter(own)


def _joined(found: Iterable[tuple[pa.Array, pa.Array]]) -> tuple[pa.Array, pa.Array]:
    none = pa.nulls(0, pa.string())
    every = list(found)
    return (
        pa.concat_arrays([none, *(keys for keys, _ in every)]),
        pa.concat_arrays([none, *(times for _, times in every)]),
    )


def _keys(parts: Iterable[KeyedRecords]) -> pa.Array:
    return pa.concat_arrays([pa.nulls(0, pa.string()), *(part.keys for part in parts)])
