"""Hash whole rows to 128 bits, so that rows with equal hashes count as equal. Reads no file.

As in `tidegate.read.codes`, NULL equals NULL, NaN equals NaN, and 0.0 is not -0.0. The hashes hold
within one process only: they are of polars, and `tidegate.read.row_hash` adds what polars treats as
equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.physical.arrays import integer_column, integers, missing
from tidegate.read.row_hash import hash_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

WholeHashes = tuple["npt.NDArray[np.uint64]", "npt.NDArray[np.uint64]"]

_SEEDS = (0x5EED, 0x7E1D)
_MOST_DIGITS = 38
"""A decimal with more digits is one that polars does not know."""


def hash_whole_rows(columns: Sequence[pa.Array], rows: int) -> WholeHashes:
    """Hash the rows of some columns.

    Args:
        columns: of equal length and of plain types, see `tidegate.target.schema.plain`.
        rows: their length, needed if there are no columns.

    Returns:
        Twice uint64[rows]; together they are equal for equal rows only, but for chance: in a
        comparison of 10**9 rows, of one in 10**20.
    """
    hashed = [part for column in columns for part in _parts(column)]
    if not hashed or not rows:
        return np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    frame = pl.DataFrame([pl.Series(str(number), part) for number, part in enumerate(hashed)])
    first, second = (frame.hash_rows(seed=seed).to_numpy() for seed in _SEEDS)
    return first, second


def _parts(column: pa.Array) -> Iterator[pa.Array]:
    """Yield what polars hashes instead of a column, and tells apart all that has to be."""
    kind = column.type
    if pa.types.is_floating(kind):
        yield _bits(column)
        return
    is_known = not _contains(kind, _is_unknown)
    if is_known:
        yield column
    if not is_known or _contains(kind, pa.types.is_floating):
        yield integer_column(hash_rows([column], len(column)).view(np.int64))


def _bits(column: pa.Array) -> pa.Array:
    """Return floats as the integers of their bits; every NaN is the same, and NULL stays NULL."""
    width = column.type.bit_width
    floats = integers(column.view(pa.type_for_alias(f"uint{width}"))).view(f"f{width // 8}")
    bits = floats.view(f"i{width // 8}").astype(np.int64)
    # No other float has these bits: as a double they are a NaN, and the narrower ones are small.
    bits[np.isnan(floats)] = np.iinfo(np.int64).max
    absent = missing(column)
    if absent is None:
        return integer_column(bits)
    # The buffer of a float has arbitrary content where it is NULL.
    bits[absent] = np.iinfo(np.int64).max - 1
    return integer_column(bits)


def _is_unknown(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS)


def _contains(kind: pa.DataType, is_wanted: Callable[[pa.DataType], bool]) -> bool:
    """Return whether a type, or one inside it, is wanted."""
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return is_wanted(kind) or any(_contains(item, is_wanted) for item in inner)
