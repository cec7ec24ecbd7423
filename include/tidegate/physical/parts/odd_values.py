"""Find the columns that have a value which a format cannot spell, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

IsOdd = Callable[[pl.Expr, Any], pl.Expr | None]
"""Plain values and their type → where one is odd; None: no value of this type is."""


def odd_columns(rows: pa.RecordBatch, is_odd: IsOdd) -> Iterator[str]:
    """Yield the columns with an odd value."""
    frame: Any = pl.from_arrow(rows)
    tests = [
        test.alias(name)
        for name, kind in frame.schema.items()
        if (test := _any(pl.col(name), kind, is_odd)) is not None
    ]
    if tests and rows.num_rows:
        found = frame.select(tests).row(0, named=True)
        yield from (name for name, is_found in found.items() if is_found)


def _any(values: pl.Expr, kind: Any, is_odd: IsOdd) -> pl.Expr | None:
    """Return whether a column has an odd value; None: it cannot."""
    if isinstance(kind, pl.List):
        return _any(values.explode(), kind.inner, is_odd)
    if isinstance(kind, pl.Struct):
        tests = (_any(values.struct.field(it.name), it.dtype, is_odd) for it in kind.fields)
        possible = [test for test in tests if test is not None]
        return pl.any_horizontal(possible) if possible else None
    test = is_odd(values, kind)
    return None if test is None else test.any()
