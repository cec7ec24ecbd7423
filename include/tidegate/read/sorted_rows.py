"""Sort rows by columns, and merge sorted runs that do not fit in memory. Knows no files.

The order is the same however the rows are cut into runs: rows with equal keys stay in the order of
the input. NULL comes last in both directions, and NaN right before it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from tidegate.model.sort_key import SortKey
from tidegate.physical.arrays import Integers, integer_column, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class RowOrder:
    """The order of rows in a part file."""

    keys: tuple[SortKey, ...] = ()
    """The first key decides, the others among equal values; empty: the order of the input."""

    def __bool__(self) -> bool:
        """Return whether rows are sorted at all."""
        return bool(self.keys)

    def values(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return what decides the order of rows: one column per key."""
        columns = [_comparable(rows.column(key.column)) for key in self.keys]
        return pa.RecordBatch.from_arrays(columns, [str(at) for at in range(len(columns))])

    def positions(self, values: pa.RecordBatch) -> Integers:
        """Return the positions of rows in their order.

        Args:
            values: see `values`.

        Raises:
            pa.ArrowException: values of a type cannot be compared.
        """
        import pyarrow.compute as pc

        directions = [
            (str(at), "descending" if key.descending else "ascending")
            for at, key in enumerate(self.keys)
        ]
        found = pc.sort_indices(values, sort_keys=directions)
        return integers(found).astype(np.int64, copy=False)

    def sorted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in their order."""
        return rows.take(integer_column(self.positions(self.values(rows))))


def order_problem(kind: pa.DataType) -> str | None:
    """Return why rows cannot be sorted by a column of a type; None if they can."""
    if pa.types.is_nested(kind):
        return "values that consist of others have no order"
    none = pa.RecordBatch.from_pylist([], pa.schema([("key", kind)]))
    try:
        RowOrder((SortKey("key"),)).sorted(none)
    except pa.ArrowException:
        return "its values have no order here"
    return None


class Block(Protocol):
    """Consecutive rows of a sorted run, somewhere outside memory."""

    @property
    def first(self) -> pa.RecordBatch:
        """What decides the order of the first row, see `RowOrder.values`."""
        ...

    def read(self) -> pa.RecordBatch:
        """Return the rows, at least one."""
        ...


@dataclass
class _Run:
    """What is left of one run."""

    waiting: deque[Block]
    rows: pa.RecordBatch | None = None
    """Rows in memory, which precede the waiting ones."""
    loaded: int = 0
    """The number of rows of the newest block."""

    @property
    def held(self) -> int:
        """The number of rows in memory."""
        return self.rows.num_rows if self.rows is not None else 0

    def load(self) -> None:
        """Read one more block, unless most of the newest one is still there."""
        if self.held * 2 > self.loaded:
            return
        block = self.waiting.popleft().read()
        self.loaded = block.num_rows
        self.rows = block if self.rows is None else pa.concat_batches([self.rows, block])

    def drop(self, count: int) -> None:
        """Forget the first rows."""
        if self.rows is not None:
            self.rows = self.rows.slice(count) if count < self.rows.num_rows else None


def merge_runs(runs: Iterable[Sequence[Block]], order: RowOrder) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs; of equal rows, those of an earlier run come first.

    In memory are at most two blocks of each run, and one where runs follow one another.

    Args:
        runs: in the order of the input.
        order: the order of each run, and of the result.
    """
    left = [_Run(deque(run)) for run in runs if run]
    while left:
        rows = _merge_loaded(left, order)
        if rows is not None:
            yield rows
        left = [run for run in left if run.waiting or run.rows is not None]


def _merge_loaded(runs: Sequence[_Run], order: RowOrder) -> pa.RecordBatch | None:
    """Return the rows in memory that no waiting row precedes, and load what comes next.

    The first row of a waiting block stands for the block, after the rows of its own run: among
    equal rows, too, those before the smallest such mark are complete.
    """
    held = np.array([run.held for run in runs])
    waits = np.array([bool(run.waiting) for run in runs])
    run_of = np.repeat(np.arange(len(runs)), held + waits)
    is_mark = np.zeros(len(run_of), dtype=np.bool_)
    is_mark[(np.cumsum(held + waits) - 1)[waits]] = True
    found = order.positions(_loaded_values(runs, order))
    marks = np.flatnonzero(is_mark[found])
    end = int(marks[0]) if len(marks) else len(found)
    complete = found[:end]
    rows = None
    if end:
        loaded = pa.concat_batches([run.rows for run in runs if run.rows is not None])
        rows = loaded.take(integer_column(complete - np.cumsum(is_mark)[complete]))
        for run, count in zip(
            runs, np.bincount(run_of[complete], minlength=len(runs)), strict=True
        ):
            run.drop(int(count))
    last_row = int(np.flatnonzero(~is_mark[found]).max(initial=-1))
    for mark in marks[marks <= max(end, last_row)].tolist():
        runs[run_of[found[mark]]].load()
    return rows


def _loaded_values(runs: Sequence[_Run], order: RowOrder) -> pa.RecordBatch:
    values = []
    for run in runs:
        if run.rows is not None:
            values.append(order.values(run.rows))
        if run.waiting:
            values.append(run.waiting[0].first)
    return pa.concat_batches(values)


def _comparable(column: pa.Array) -> pa.Array:
    """Return a column in a type that Arrow compares: without dictionary and extension."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
