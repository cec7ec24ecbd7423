"""Find the rows of a batch with one of a set of keys, NULL equal to NULL (ICE-6.8). Reads no file.

The hash of each row's key is looked up among the sorted hashes of the keys, and matches are
compared by value. Compared with looking up each column in a dictionary of deleted values, which
Arrow builds again for every batch, this is as fast for a few keys and twenty times as fast for a
million. It is never a join, which loses NULL keys and the order of the rows (ICE-6.10).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import (
    Flags,
    Integers,
    boolean_column,
    flags,
    integer_column,
    integers,
    missing,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.read.removed import RemovedKeys

_Hashes = npt.NDArray[np.uint64]

_FEWEST_BITS = 16
_MOST_BITS = 26
"""A sieve has one byte for each value of this many leading bits: 64 KiB to 64 MiB."""
_SPARSE_BITS = 4
"""Bits beyond those for the number of keys, so that one row in sixteen passes by chance."""


class KeyIndex:
    """The keys of one set, ready for look-ups from many threads.

    Args:
        names: the columns of the key.
        keys: their values, one array for each.
    """

    def __init__(self, names: Sequence[str], keys: Sequence[pa.Array]) -> None:
        self._names = names
        columns = [_plain(column) for column in keys]
        self._seed, order = _distinct(columns)
        self._order = order
        self._columns = [column.take(integer_column(order)) for column in columns]
        self._hashes = _hashes(self._columns, self._seed)
        bits = len(order).bit_length() + _SPARSE_BITS
        self._shift = np.uint64(64 - min(max(bits, _FEWEST_BITS), _MOST_BITS))
        self._sieve: Flags = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)
        self._sieve[self._leading(self._hashes)] = True

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray | None:
        """Return a mask of the rows that have one of the keys.

        Args:
            batch: rows with the key's columns, of the same types as the keys.

        Returns:
            bool[batch.num_rows] without NULL; None if no row has.
        """
        rows, _ = self.find(batch)
        if not len(rows):
            return None
        found: Flags = np.zeros(batch.num_rows, dtype=np.bool_)
        found[rows] = True
        return boolean_column(found)

    def find(self, batch: pa.RecordBatch) -> tuple[Integers, Integers]:
        """Return the rows that have one of the keys, and which one.

        Args:
            batch: rows with the key's columns, of the same types as the keys.

        Returns:
            Positions of rows, ascending, and for each the place of its key among the given ones; of
            equal keys the first.
        """
        columns = [_plain(batch.column(name)) for name in self._names]
        hashes = _hashes(columns, self._seed)
        rows = np.flatnonzero(self._sieve[self._leading(hashes)])
        if not len(self._hashes):
            return rows, rows
        places = np.searchsorted(self._hashes, hashes[rows])
        places[places == len(self._hashes)] = 0
        hit = self._hashes[places] == hashes[rows]
        rows, places = rows[hit], places[hit]
        equal = _are_equal(columns, rows, self._columns, places)
        return rows[equal], self._order[places[equal]]

    def _leading(self, hashes: _Hashes) -> Integers:
        return (hashes >> self._shift).astype(np.int64)


_INDEXES: WeakKeyDictionary[RemovedKeys, KeyIndex] = WeakKeyDictionary()
_BUILDING = threading.Lock()


def index_of(keys: RemovedKeys) -> KeyIndex:
    """Return the index of a key set, which is built once and lives as long as the set."""
    with _BUILDING:
        index = _INDEXES.get(keys)
        if index is None:
            index = _INDEXES[keys] = KeyIndex(keys.columns, keys.rows.columns)
        return index


def _distinct(columns: list[pa.Array]) -> tuple[int, Integers]:
    """Find a seed with which different keys have different hashes.

    Returns:
        The seed, and one row of each key, ordered by hash.
    """
    seed = 0
    while True:
        hashes = _hashes(columns, seed)
        order = np.argsort(hashes, kind="stable")
        again = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
        if _are_equal(columns, order[again], columns, order[again + 1]).all():
            return seed, np.delete(order, again + 1)
        seed += 1


def _hashes(columns: list[pa.Array], seed: int) -> _Hashes:
    names = [str(number) for number in range(len(columns))]
    frame = pl.DataFrame(pl.from_arrow(pa.RecordBatch.from_arrays(columns, names)))
    found = frame.hash_rows(seed).to_arrow()
    return integers(found)


def _are_equal(
    left: list[pa.Array], left_rows: Integers, right: list[pa.Array], right_rows: Integers
) -> Flags:
    """Compare the keys of pairs of rows."""
    same: Flags = np.ones(len(left_rows), dtype=np.bool_)
    for one, other in zip(left, right, strict=True):
        same &= _are_equal_values(
            one.take(integer_column(left_rows)), other.take(integer_column(right_rows))
        )
    return same


def _are_equal_values(one: pa.Array, other: pa.Array) -> Flags:
    if pa.types.is_null(one.type):
        # Arrow compares no columns of the type null, whose values are all the same.
        return np.ones(len(one), dtype=np.bool_)
    equal = flags(pc.equal(one, other))
    absent, other_absent = missing(one), missing(other)
    if absent is None and other_absent is None:
        return equal
    absent = absent if absent is not None else np.zeros_like(equal)
    other_absent = other_absent if other_absent is not None else np.zeros_like(equal)
    return (equal & ~absent & ~other_absent) | (absent & other_absent)


def _plain(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column
