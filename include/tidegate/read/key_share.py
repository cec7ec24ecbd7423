"""Divide keys by their hashes, which are the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.read.row_hash import hash_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.physical.arrays import Codes, Flags


@dataclass(frozen=True)
class KeyShare:
    """The keys whose number is in a range; every key has one of `numbers` numbers."""

    numbers: int
    start: int
    end: int
    """One past the last."""

    def holds(self, keys: pa.Array) -> Flags:
        """Return which keys belong to the share."""
        found = numbered_keys(keys, self.numbers)
        return (self.start <= found) & (found < self.end)


def numbered_keys(keys: pa.Array, numbers: int) -> Codes:
    """Return a number for each key, from 0 to below `numbers`; equal keys have the same."""
    hashes = hash_rows([keys], len(keys))
    return (hashes % np.uint64(numbers)).astype(np.intp)
