"""Find the rows of many batches that have one of a set of keys, and which key each has.

The hash of a row's key is looked up among the sorted hashes of the set, and matches are compared by
value. Arrow's `index_in` builds its table of the set again for every batch, which takes five times
as long for 400,000 keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import flags, integer_column, integers, where_true

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.physical.arrays import Flags

    Indices = NDArray[np.int64]

_FEWEST_BITS = 16
_MOST_BITS = 26
"""A sieve has one byte for each value of this many leading bits: 64 KiB to 64 MiB."""
_SPARSE_BITS = 4
"""Bits of the sieve beyond those for the number of keys, so that one row in sixteen passes by
chance; bins have as many fewer."""


class KeyLookup:
    """A set of distinct keys, ready for look-ups."""

    def __init__(self, keys: pa.Array) -> None:
        """Prepare.

        Args:
            keys: distinct texts.
        """
        self._keys = keys
        hashes = _hashes(keys)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._is_exact = not (self._hashes[1:] == self._hashes[:-1]).any()
        bits = min(max(len(keys).bit_length() + _SPARSE_BITS, _FEWEST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._sieve: Flags = np.zeros(1 << bits, np.bool_)
        self._sieve[self._hashes >> self._shift] = True
        self._bin_shift = np.uint64(64 - (bits - _SPARSE_BITS))
        held = np.bincount(self._hashes >> self._bin_shift, minlength=1 << (bits - _SPARSE_BITS))
        self._bins = np.cumsum(held) - held
        self._most = int(held.max())

    def find(self, keys: pa.Array) -> tuple[Indices, Indices]:
        """Look up the keys of rows; NULL is no key.

        Returns:
            The places of rows whose key is in the set, ascending, and its index in the set.
        """
        if not len(self._keys) or not len(keys):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if not self._is_exact:
            return self._compared(keys)
        hashes = _hashes(keys)
        places = np.flatnonzero(self._sieve[hashes >> self._shift])
        places, near = self._near(hashes, places)
        indices = self._order[near]
        equal = pc.equal(
            keys.take(integer_column(places)), self._keys.take(integer_column(indices))
        )
        found = where_true(equal)
        return places[found], indices[found]

    def _near(self, hashes: NDArray[np.uint64], places: Indices) -> tuple[Indices, Indices]:
        """Return which places have a hash of the set, ascending, and where it is among the sorted.

        Hashes with the same leading bits are side by side, one or two of them: the first of each
        bin is looked up, and those that follow it for the places that had no match yet.
        """
        wanted = hashes[places]
        near = self._bins[wanted >> self._bin_shift]
        last = len(self._hashes) - 1
        found = self._hashes[np.minimum(near, last)] == wanted
        open_ = np.flatnonzero(~found)
        for _ in range(self._most - 1):
            near[open_] += 1
            found[open_] = self._hashes[np.minimum(near[open_], last)] == wanted[open_]
            open_ = open_[~found[open_]]
        return places[found], near[found]

    def _compared(self, keys: pa.Array) -> tuple[Indices, Indices]:
        """Look up where two keys of the set have the same hash."""
        found = pc.index_in(keys, value_set=self._keys, skip_nulls=True)
        places = np.flatnonzero(flags(found.is_valid()))
        return places, integers(found.drop_null()).astype(np.int64)


def _hashes(keys: pa.Array) -> NDArray[np.uint64]:
    series = pl.from_arrow(keys)
    assert isinstance(series, pl.Series)
    return series.hash().to_numpy()
