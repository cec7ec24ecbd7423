"""Number rows by their hashes, and verify the numbers by their values.

Comparing each value once with its equals costs half as much as numbering all values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import Integers, flags, integer_column, integers
from tidegate.read.codes import row_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.read.row_hash import Hashes


def hashed_codes(columns: Sequence[pa.Array], hashes: Hashes) -> Integers:
    """Number rows like `row_codes`; unequal rows have different numbers whatever their hashes.

    Args:
        columns: of equal length, at least one.
        hashes: of the rows, from `hash_rows`.
    """
    codes: Integers = integers(row_codes([integer_column(hashes.view(np.int64))]))
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    leaders = integer_column(first[codes])
    if all(_are_same(column, leaders) for column in columns):
        return codes
    exact: Integers = integers(row_codes(columns))
    return exact


def _are_same(column: pa.Array, leaders: pa.Int64Array) -> bool:
    """Return whether each value equals the first one with its number."""
    kind = column.type
    if pa.types.is_null(kind):
        # Arrow compares no columns of the type null, whose values are all the same.
        return True
    if pa.types.is_floating(kind):
        # Compared by bits: 0.0 and -0.0 differ, and a NaN equals itself.
        column = column.view(pa.type_for_alias(f"int{kind.bit_width}"))
    elif isinstance(column, pa.ExtensionArray) or pa.types.is_nested(kind):
        column = row_codes([column])
    led = column.take(leaders)
    equal = flags(pc.coalesce(pc.equal(column, led), led.is_null()))
    if column.null_count:
        equal &= flags(column.is_valid()) == flags(led.is_valid())
    return bool(equal.all())
