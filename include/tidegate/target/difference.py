"""Compare the rows of two lists of files: which were added, which removed, which changed by key.

Equal rows cancel, each as often as both sides have it. With keys, a row that is left on each side
with the same key is one that changed. Rows are compared under the schema that both sides can be
read with: a column that a file lacks is NULL there.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.errors import KeyUnknown
from tidegate.physical.arrays import boolean_column, integer_column, integers, repeated_text
from tidegate.read.codes import codes
from tidegate.read.row_difference import HashedRows, Pairs, buckets_for, excess
from tidegate.read.whole_rows import hash_whole_rows
from tidegate.storage.temporary_folder import TemporaryFolder
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tidegate.physical.arrays import Flags, Integers
    from tidegate.physical.protocol import PhysicalRows

ADDED, REMOVED, BEFORE, AFTER = "added", "removed", "before", "after"
KIND = "_diff"
"""The column that tells which of these a row is."""

_FIRST_ROWS, _MOST_ROWS = 8_192, 262_144
_MOST_BYTES = 128 << 20
"""About how much of changed rows is in memory at a time, with the rows that they became."""


@dataclass(frozen=True)
class ComparedFile:
    """One file of a side."""

    path: str
    open: Callable[[], PhysicalRows]


class _Side:
    """The rows of some files, numbered through."""

    def __init__(self, files: Sequence[ComparedFile]) -> None:
        self._files = files
        self.schemas: list[tuple[str, pa.Schema]] = []
        lengths = []
        for file in files:
            with file.open() as rows:
                self.schemas.append((file.path, rows.schema))
                lengths.append(rows.rows)
        self._starts = [0, *accumulate(lengths)]

    @property
    def rows(self) -> int:
        return self._starts[-1]

    @property
    def names(self) -> list[str]:
        """Every column of a file, in order of first occurrence."""
        return list(dict.fromkeys(name for _, schema in self.schemas for name in schema.names))

    def batches(
        self, schema: pa.Schema, wanted: Flags | None = None
    ) -> Iterator[tuple[Integers, pa.RecordBatch]]:
        """Read rows under a schema, which may have some of the columns only.

        Args:
            schema: the columns, and the types that they are read as.
            wanted: bool[rows], which rows; row groups without one are not read. None: all.

        Yields:
            The numbers of the rows, and the rows.
        """
        for first, file in zip(self._starts, self._files, strict=False):
            with file.open() as rows:
                names = [name for name in schema.names if name in rows.schema.names]
                for start, end in _spans(rows, first, wanted):
                    for at, batch in rows.batches(names, start, end):
                        numbers = np.arange(first + at, first + at + batch.num_rows)
                        found = _conformed(batch, schema)
                        if wanted is not None:
                            chosen = wanted[numbers]
                            numbers = numbers[chosen]
                            found = found.filter(boolean_column(chosen))
                        if len(numbers):
                            yield numbers, found


def _spans(rows: PhysicalRows, first: int, wanted: Flags | None) -> Iterator[tuple[int, int]]:
    """Yield the spans of a file that have a wanted row, one or more row groups each."""
    if wanted is None:
        yield 0, rows.rows
        return
    ends = list(accumulate(group.rows for group in rows.row_groups))
    for start, end in zip([0, *ends], ends, strict=False):
        if wanted[first + start : first + end].any():
            yield start, end


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns and types of a schema; a column that it lacks is NULL."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class Change:
    """Rows that changed, aligned."""

    before: pa.RecordBatch
    after: pa.RecordBatch
    differs: dict[str, Flags]
    """Column → bool[n], which of the rows differ in it; columns without a difference are left
    out."""


@dataclass(eq=False)
class Difference:
    """The difference of two sides. Found in the constructor, and read when it is asked for.

    Runs on: one process. Called: once per command, within `with`.
    Failure: nothing is changed, and a temporary directory may be left.
    """

    old: Sequence[ComparedFile]
    new: Sequence[ComparedFile]
    common: Sequence[ComparedFile] = ()
    """Files of both sides, which are opened at most for their columns."""
    keys: Sequence[str] = ()
    changed_columns: Counter[str] = field(default_factory=Counter, init=False)
    """Column → in how many of the changed rows it differs, as far as `changes` was read."""
    repeated_keys: int = field(default=0, init=False)
    """Keys left on both sides, and on one of them several times: it is not known which row became
    which, so that they count as removed and added."""

    def __post_init__(self) -> None:
        """Find the rows by which the two sides differ.

        Raises:
            ColumnTypesDiffer: a column has two types with no common one.
            KeyUnknown: no file has a column of this name, which is to be a key.
        """
        self._old, self._new = _Side(self.old), _Side(self.new)
        self.schema = unified([*self._old.schemas, *self._new.schemas])
        """All columns of both sides."""
        unknown = [name for name in self.keys if name not in self.schema.names]
        if unknown and self.schema.names:
            raise KeyUnknown(column=unknown[0], known=", ".join(self.schema.names))
        self._only_old = np.zeros(self._old.rows, np.bool_)
        self._only_new = np.zeros(self._new.rows, np.bool_)
        self._pairs: Pairs | None = None
        with TemporaryFolder("diff") as scratch, ExitStack() as open_files:
            for removed, added in excess(*self._hashed(scratch.path / "rows", open_files, None)):
                self._only_old[removed] = True
                self._only_new[added] = True
            if self.keys and self._only_old.any() and self._only_new.any():
                self._pairs = Pairs(*self._hashed(scratch.path / "keys", open_files, self.keys))
        if self._pairs is not None:
            self.repeated_keys = self._pairs.repeated
            self._only_old[self._pairs.old] = False
            self._only_new[self._pairs.new] = False

    @property
    def added(self) -> int:
        """The number of rows that were added."""
        return int(self._only_new.sum())

    @property
    def removed(self) -> int:
        """The number of rows that were removed."""
        return int(self._only_old.sum())

    @property
    def changed(self) -> int:
        """The number of rows that have the same key, and other values."""
        return 0 if self._pairs is None else len(self._pairs.old)

    @property
    def columns_added(self) -> tuple[str, ...]:
        """Columns that only the new side has."""
        old, new = self._columns
        return tuple(name for name in new if name not in old) if old else ()

    @property
    def columns_removed(self) -> tuple[str, ...]:
        """Columns that only the old side has."""
        old, new = self._columns
        return tuple(name for name in old if name not in new) if new else ()

    @property
    def columns_retyped(self) -> dict[str, tuple[str, str]]:
        """Columns with another type: name → the old one, the new one."""
        old, new = self._columns
        both = [name for name in old if name in new and old[name] != new[name]]
        return {name: (str(old[name]), str(new[name])) for name in both}

    @cached_property
    def _columns(self) -> tuple[dict[str, pa.DataType], dict[str, pa.DataType]]:
        """The columns of each side with their types."""
        old, new = (_types(side.schemas) for side in (self._old, self._new))
        if old == new:
            return old, new
        common = _Side(self.common).schemas
        return _types([*self._old.schemas, *common]), _types([*self._new.schemas, *common])

    def added_rows(self) -> Iterator[pa.RecordBatch]:
        """Read the rows that were added."""
        return (batch for _, batch in self._new.batches(self.schema, self._only_new))

    def removed_rows(self) -> Iterator[pa.RecordBatch]:
        """Read the rows that were removed."""
        return (batch for _, batch in self._old.batches(self.schema, self._only_old))

    def changes(self) -> Iterator[Change]:
        """Read the rows that changed, and count by column; only once."""
        if self._pairs is None:
            return
        start, rows = 0, _FIRST_ROWS
        while start < self.changed:
            span = slice(start, start + rows)
            before = self._rows(self._old, self._pairs.old[span])
            after = self._rows(self._new, self._pairs.new[span])
            differs = {
                name: found
                for name in self.schema.names
                if (found := _differ(before.column(name), after.column(name))).any()
            }
            self.changed_columns.update({name: int(at.sum()) for name, at in differs.items()})
            yield Change(before, after, differs)
            start += before.num_rows
            width = 1 + (before.nbytes + after.nbytes) // before.num_rows
            rows = min(_MOST_ROWS, max(1, _MOST_BYTES // width))

    def all_rows(self) -> pa.RecordBatchReader:
        """Read the whole difference: each row with what it is in the column `_diff`.

        A changed row is followed by what it became.
        """
        name = KIND
        while name in self.schema.names:
            name = f"_{name}"
        schema = pa.schema([pa.field(name, pa.string()), *self.schema])
        return pa.RecordBatchReader.from_batches(schema, self._told(schema))

    def _told(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for change in self.changes():
            told = [
                _telling(kind, batch, schema)
                for kind, batch in ((BEFORE, change.before), (AFTER, change.after))
            ]
            rows = change.before.num_rows
            turns = np.arange(2 * rows).reshape(2, rows).T.ravel()
            yield pa.concat_batches(told).take(integer_column(np.ascontiguousarray(turns)))
        yield from (_telling(REMOVED, batch, schema) for batch in self.removed_rows())
        yield from (_telling(ADDED, batch, schema) for batch in self.added_rows())

    def _hashed(
        self, folder: Path, open_files: ExitStack, keys: Sequence[str] | None
    ) -> tuple[HashedRows, HashedRows]:
        """Hash all rows of both sides, or the keys of those that only one side has."""
        folder.mkdir()
        wanted = (None, None) if keys is None else (self._only_old, self._only_new)
        rows = self._old.rows + self._new.rows if keys is None else self.added + self.removed
        schema = self.schema if keys is None else pa.schema([self.schema.field(k) for k in keys])
        made = []
        for name, side, mask in zip(("old", "new"), (self._old, self._new), wanted, strict=True):
            bag = open_files.enter_context(HashedRows(folder / name, buckets_for(rows)))
            for numbers, batch in side.batches(schema, mask):
                bag.add(hash_whole_rows(batch.columns, batch.num_rows), numbers)
            made.append(bag)
        return made[0], made[1]

    def _rows(self, side: _Side, numbers: Integers) -> pa.RecordBatch:
        """Read some rows of a side, in the order in which they are named."""
        wanted = np.zeros(side.rows, np.bool_)
        wanted[numbers] = True
        found = pa.concat_batches([batch for _, batch in side.batches(self.schema, wanted)])
        places = np.empty(len(numbers), np.int64)
        places[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
        return found.take(integer_column(places))


def _types(schemas: Sequence[tuple[str, pa.Schema]]) -> dict[str, pa.DataType]:
    return {column.name: column.type for column in unified(schemas)}


def _differ(before: pa.Array, after: pa.Array) -> Flags:
    """Return in which places two columns differ."""
    numbers = integers(codes(pa.concat_arrays([before, after])))
    differs: Flags = numbers[: len(before)] != numbers[len(before) :]
    return differs


def _telling(kind: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Put what rows are in front of them."""
    said = repeated_text(kind, batch.num_rows)
    return pa.RecordBatch.from_arrays([said, *batch.columns], schema=schema)
