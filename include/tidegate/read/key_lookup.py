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

from tidegate.physical.arrays import flags

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidegate.physical.arrays import Flags

    Indices = NDArray[np.int64]

_FEWEST_BITS = 16
_MOST_BITS = 26
"""A sieve has one byte for each value of this many leading bits: 64 KiB to 64 MiB."""
_SPARSE_BITS = 4
"""Bits beyond those for the number of keys, so that one row in sixteen passes by chance."""


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
        near = np.minimum(np.searchsorted(self._hashes, hashes[places]), len(self._hashes) - 1)
        same = self._hashes[near] == hashes[places]
        places, indices = places[same], self._order[near[same]]
        equal = pc.equal(keys.take(pa.array(places)), self._keys.take(pa.array(indices)))
        found = flags(equal.fill_null(False))
        return places[found], indices[found]

    def _compared(self, keys: pa.Array) -> tuple[Indices, Indices]:
        """Look up where two keys of the set have the same hash."""
        found = pc.index_in(keys, value_set=self._keys, skip_nulls=True)
        places = np.flatnonzero(flags(found.is_valid()))
        return places, found.drop_null().to_numpy().astype(np.int64)


def _hashes(keys: pa.Array) -> NDArray[np.uint64]:
    series = pl.from_arrow(keys)
    assert isinstance(series, pl.Series)
    return series.hash().to_numpy()
