"""Find erased rows by the fingerprints of their values.

A fingerprint is told of the text of a value, so that it outlives a wider type of its column.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.erasure import Fingerprint
from tidegate.model.wire import canonical
from tidegate.physical.arrays import boolean_column, integer_column
from tidegate.read.row_hash import hash_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tidegate.model.erasure import Erasure
    from tidegate.physical.arrays import Flags, Integers

_BUCKETS = 1 << 16
"""Of the upper half of a hint, which rules out most rows without a search."""
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def erasable_problem(kind: pa.DataType) -> str | None:
    """Return why values of a type identify no row that is erased; None if they do."""
    if _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind):
        return None
    return f"a value of type {kind} is compared by no text; use text, whole numbers or dates"


def kind_of(kind: pa.DataType) -> str:
    """Return of what kind the values of a type without an `erasable_problem` are."""
    if _is_text(kind):
        return "text"
    return "dates" if pa.types.is_date(kind) else "whole numbers"


def untold(erasure: Erasure, columns: pa.Schema) -> tuple[str, str] | None:
    """Return the column for which the rows of an erasure cannot be told from others, and why.

    Returns:
        None if they can.
    """
    for name, kind in zip(erasure.columns, erasure.kinds, strict=True):
        if name not in columns.names:
            return name, "no such column"
        found = columns.field(name).type
        problem = erasable_problem(found)
        if problem is None and kind_of(found) != kind:
            problem = f"{kind_of(found)} in it, where {kind} were named"
        if problem is not None:
            return name, problem
    return None


def without(columns: pa.Schema, lacks: Collection[str]) -> pa.Schema:
    """Return the columns that remain to tell rows by, in a file that lacks some."""
    return pa.schema([column for column in columns if column.name not in lacks])


def fingerprints(columns: Sequence[pa.Array], salt: str) -> tuple[Fingerprint, ...]:
    """Return the fingerprints of rows.

    Args:
        columns: of equal length, of types without an `erasable_problem`, and without NULL.
        salt: of the erasure.
    """
    texts = [_texts(column) for column in columns]
    hints = _hints(texts)
    found = zip(*(text.to_pylist() for text in texts), strict=True)
    return tuple(
        Fingerprint(_digest(salt, row), int(hint)) for row, hint in zip(found, hints, strict=True)
    )


class ErasedRows:
    """The rows that some erasures name, in batches of one schema.

    Args:
        erasures: in any order; those whose rows cannot be told by the schema name none.
        schema: of the batches.
    """

    def __init__(self, erasures: Iterable[Erasure], schema: pa.Schema) -> None:
        by_columns: dict[tuple[tuple[str, ...], str], list[Fingerprint]] = defaultdict(list)
        for item in erasures:
            if item.columns and untold(item, schema) is None:
                by_columns[item.columns, item.salt] += item.rows
        self._named = [_Named(columns, salt, rows) for (columns, salt), rows in by_columns.items()]
        self.columns = tuple(
            name for name in schema.names if any(name in columns for columns, _salt in by_columns)
        )
        """The columns that have to be read to tell; none: no row is erased."""

    def mask(self, batch: pa.RecordBatch) -> Flags:
        """Return which rows are erased.

        Args:
            batch: with at least `columns`.
        """
        erased: Flags = np.zeros(batch.num_rows, np.bool_)
        for named in self._named:
            named.note(batch, erased)
        return erased

    def left(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the other rows."""
        erased = self.mask(batch)
        return batch.filter(boolean_column(~erased)) if erased.any() else batch


class _Named:
    """What is erased by the values of the same columns."""

    def __init__(self, columns: tuple[str, ...], salt: str, rows: Sequence[Fingerprint]) -> None:
        self._columns = columns
        self._salt = salt
        self._digests = {row.digest for row in rows}
        self._has_row = np.zeros(_BUCKETS, np.bool_)
        self._hints = np.unique(np.array([row.hint for row in rows], np.int64))
        self._has_row[self._hints >> 16] = True

    def note(self, batch: pa.RecordBatch, erased: Flags) -> None:
        """Set the flags of the rows that are erased."""
        texts = [_texts(batch.column(name)) for name in self._columns]
        hints = _hints(texts)
        asked = np.flatnonzero(self._has_row[hints >> 16])
        asked = asked[np.isin(hints[asked], self._hints)]
        if not len(asked):
            return
        # Nearly all rows with a hint are erased ones.
        rows = zip(*(text.take(integer_column(asked)).to_pylist() for text in texts), strict=True)
        known: dict[tuple[str | None, ...], bool] = {}
        for place, row in zip(asked.tolist(), rows, strict=True):
            if row not in known:
                known[row] = None not in row and _digest(self._salt, row) in self._digests
            erased[place] |= known[row]


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return any(fits(kind) for fits in _TEXTS)


def _texts(column: pa.Array) -> pa.Array:
    return pc.cast(column, pa.string()) if column.type != pa.string() else column


def _hints(texts: Sequence[pa.Array]) -> Integers:
    # Of each row, the highest bits of its hash, which are mixed best.
    hashes = hash_rows(texts, len(texts[0]))
    hints: Integers = (hashes >> np.uint64(32)).astype(np.int64)
    return hints


def _digest(salt: str, row: tuple[str | None, ...]) -> str:
    said = canonical([salt, *row])
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()
