"""Merge the rows of a slice with what was loaded of its logs; opens nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import boolean_column, text_column, where_true
from tidegate.read.keyed_merge import Applied, StandingRows, newest_of_each_key
from tidegate.source.hudi.merge.records import joined_records, record_keys, standing_rows
from tidegate.source.hudi.reading.deleted_keys import DeletedKeys, Gone, told_by
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

    @classmethod
    def of(
        cls,
        parts: Mapping[Kind, Sequence[KeyedRecords]],
        schema: pa.Schema,
        *,
        tells_deletes: bool,
    ) -> Loaded:
        """Merge log records among themselves.

        Args:
            parts: what was loaded, in its order.
            schema: of the records of the logs.
            tells_deletes: whether deleted keys are returned.
        """
        records = newest_of_each_key(joined_records(parts[Kind.RECORD], schema))
        history = _keys(parts[Kind.HISTORY])
        gone = None
        if tells_deletes:
            deletes = [told_by(it) for kind in (Kind.HISTORY, Kind.PREVIOUS) for it in parts[kind]]
            none = pa.nulls(0, pa.string())
            gone = Gone(
                pa.concat_arrays([none, *(it.keys for it in deletes)]),
                pa.concat_arrays([none, *(it.times for it in deletes)]),
            )
        marked = records.marked | among(records.keys, history)
        return cls(replace(records, marked=marked), history, gone)


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
        self._history = loaded.history
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
            marks = self._of_window(rows) | among(record_keys(rows, self._by), self._history)
        if self._only:
            rows, marks = rows.filter(boolean_column(marks)), marks[marks]
        if self._skips:
            yield pa.Table.from_batches([rows])
            return
        merged = self._standing.apply(standing_rows(rows, self._by, marks))
        if self._written is None:
            yield merged.rows
        else:
            yield self._timed(merged).filter(boolean_column(merged.marked))
        if self._tells:
            yield told_by(self._standing.records(merged.removing))
        if self._deleted is not None:
            self._deleted.meet(record_keys(rows, self._by))

    def _timed(self, merged: Applied) -> pa.Table:
        """Return rows with the times by which a feed of changes is put in order.

        A row that is back after its delete has the time of the late record that brought it back;
        Hudi leaves the one from before.
        """
        if merged.back is None or not self._tells:
            return merged.rows
        is_back = merged.back >= 0
        place = merged.rows.column_names.index(COMMIT_TIME)
        late = self._standing.records(merged.back[is_back]).rows.column(COMMIT_TIME)
        times = pc.replace_with_mask(
            merged.rows.column(place).combine_chunks(),
            boolean_column(is_back),
            late.combine_chunks(),
        )
        return merged.rows.set_column(place, merged.rows.schema.field(place), times)

    def rest(self) -> Iterator[pa.Table | Gone]:
        """Yield the records that met no row, and the keys that are gone."""
        rest = self._standing.rest()
        keep = ~rest.deleted
        if self._written is not None:
            keep &= rest.marked
        yield rest.rows.filter(boolean_column(keep))
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


def _keys(parts: Iterable[KeyedRecords]) -> pa.Array:
    return pa.concat_arrays([pa.nulls(0, pa.string()), *(part.keys for part in parts)])
