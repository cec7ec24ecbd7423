"""Find out which keys of a slice a window deleted: those that no row has afterwards (HUDI-R6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import boolean_column, integer_column, text_column, whole
from tidegate.read.key_lookup import KeyLookup
from tidegate.read.keyed_merge import KeyedRecords, newest_of_each_key
from tidegate.source.hudi.table.columns import COMMIT_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping


class Gone(NamedTuple):
    """Keys without a row."""

    keys: pa.Array
    times: pa.Array
    """The requested times of the instants that deleted them."""


def told_by(records: KeyedRecords) -> Gone:
    """Return the keys of deletes of a window, of merged records that met no row or took one away.

    Args:
        records: with a column of commit times.
    """
    own = boolean_column(records.deleted & records.marked)
    times = whole(records.rows.column(COMMIT_TIME))
    return Gone(records.keys.filter(own), times.filter(own))


def in_order(found: pa.Table | Gone, others: Mapping[str, str]) -> pa.Table | Gone:
    """Return changes with other times for some instants (HUDI-R6)."""
    if not others:
        return found
    if isinstance(found, Gone):
        return found._replace(times=_replaced(found.times, others))
    if COMMIT_TIME not in found.column_names:
        return found
    place = found.column_names.index(COMMIT_TIME)
    times = _replaced(whole(found.column(place)), others)
    return found.set_column(place, found.schema.field(place), times)


def _replaced(times: pa.Array, others: Mapping[str, str]) -> pa.Array:
    place = pc.index_in(times, value_set=text_column(list(others)))
    return pc.coalesce(text_column(list(others.values())).take(place), times)


def latest(keys: pa.Array, times: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return each key once, with the latest of its times."""
    none = np.zeros(len(keys), np.bool_)
    newest = newest_of_each_key(
        KeyedRecords(
            rows=pa.Table.from_arrays([times], names=[COMMIT_TIME]),
            keys=keys,
            deleted=none,
            marked=none,
            ordering=(times,),
            unordered=none,
        )
    )
    return newest.keys, whole(newest.rows.column(COMMIT_TIME))


class DeletedKeys:
    """Keys that may be gone although no log record of the slice says so.

    They were deleted by a record that is part of a base file by now, or stood in the base file
    before. Keys of log records are left out, because the records themselves tell.
    """

    def __init__(self, found: Gone, records: KeyedRecords) -> None:
        """Prepare.

        Args:
            found: keys that may be gone; may repeat.
            records: of the slice's logs, one per key.
        """
        self._keys, self._times = latest(*found)
        self._stand = np.zeros(len(self._keys), np.bool_)
        self._lookup = KeyLookup(self._keys)
        self.meet(records.keys)

    def meet(self, keys: pa.Array) -> None:
        """Note that rows or records have these keys."""
        _, indices = self._lookup.find(keys)
        self._stand[indices] = True

    def rest(self) -> Gone:
        """Return the keys that nothing had."""
        gone = integer_column(np.flatnonzero(~self._stand))
        return Gone(self._keys.take(gone), self._times.take(gone))
