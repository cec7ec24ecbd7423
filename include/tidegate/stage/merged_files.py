"""Merge staged changes into published files: write the files of an upsert's next revision.

Files whose rows have no change stay as they are. The others are streamed and written anew; small
ones are joined with the rows of new keys, so that their number does not grow with every revision.
"""

from __future__ import annotations

import functools
import os
import posixpath
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa

from tidegate.errors import ColumnMissing, RowsLost
from tidegate.model.message import EventTimes, PartFile
from tidegate.model.nearness import listed_with_nearest
from tidegate.model.part_format import PARQUET, PartFormat
from tidegate.model.wire import text_digest
from tidegate.physical import BATCH_ROWS
from tidegate.physical.arrays import integer_column, no_rows
from tidegate.read.erased_rows import ErasedRows
from tidegate.read.sorted_rows import RowOrder
from tidegate.read.upsert import NewestChanges, conformed, ordered_changes, replaced
from tidegate.stage import layout
from tidegate.stage.change_spill import ChangeSpill
from tidegate.stage.part_file import PartFileWriter
from tidegate.stage.part_writers import Destination, PartShape, PartWriters, WriteLimits
from tidegate.stage.read_ahead import read_ahead
from tidegate.stage.standing_rows import batch_rows, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tidegate.model.erasure import Erasure
    from tidegate.model.partition import Partition
    from tidegate.physical.arrays import Integers
    from tidegate.read.keys import KeyIndex
    from tidegate.storage import Storage

_Job = TypeVar("_Job")
_Done = TypeVar("_Done")
_AHEAD = 2
"""Batches that are decoded while a row group is written: about as many as it has."""


@dataclass(frozen=True)
class StandingFile:
    """A file of the current revision."""

    name: str
    path: str
    length: int
    columns: pa.Schema | None = None
    """As the plan of the file had them; None: as the file says."""


@dataclass(frozen=True)
class ChangeFile:
    """A staged file of changes."""

    path: str
    window: int
    """The place of its window among those that are merged."""
    rows: int


@dataclass(frozen=True)
class MergeInput:
    """What one revision of a partition is made of."""

    partition: Partition
    digest: str
    """Of all ingredients and of everything else that decides the bytes."""
    standing: tuple[StandingFile, ...]
    changes: tuple[ChangeFile, ...]
    """In content order, and in the order in which they were staged."""


@dataclass(frozen=True)
class MergeSpec:
    """How a pipeline merges."""

    keys: tuple[str, ...]
    unpublished: frozenset[str]
    """Columns of staged changes that published rows do not have."""
    memory: int
    """Bytes of changes that are kept in memory; more go through local files."""
    unify: Callable[[Iterable[tuple[str, pa.Schema]]], pa.Schema]
    """(path, schema) of files → the columns that a reader of the table sees."""
    limits: WriteLimits = field(default_factory=WriteLimits)
    form: PartFormat = PARQUET
    order: RowOrder = field(default_factory=RowOrder)
    """The order of the rows of each file."""


@dataclass(frozen=True)
class MergedFiles:
    """The outcome of a merge."""

    kept: tuple[str, ...]
    """Names of standing files without a change."""
    parts: tuple[PartFile, ...]


class Merge:
    """Makes the files of one revision.

    *Runs on:* the process that publishes the partition, under its claim. *Called:* at least once
    per revision. *Failure:* files stay in the attempt's directory, which no record names.

    Args:
        storage: where the files are written.
        spec: how they are merged.
        made_of: the ingredients.
        root: directory of the assembly.
        attempt: name of this attempt, never used before.
    """

    def __init__(
        self, storage: Storage, spec: MergeSpec, made_of: MergeInput, root: str, attempt: str
    ) -> None:
        self._storage = storage
        self._spec = spec
        self._made_of = made_of
        self._root = root
        self._attempt = attempt
        columns = {item.path: item.columns for item in made_of.standing}
        columns |= dict.fromkeys(item.path for item in made_of.changes)
        self._columns = _published_columns(storage, columns, spec)
        self._keys = spec.keys
        for key in spec.keys if made_of.changes else ():
            if key not in self._columns.names:
                known = listed_with_nearest(key, self._columns.names)
                raise ColumnMissing(source="target.keys", column=key, known=known)

    def run(self) -> MergedFiles:
        """Write the files.

        Raises:
            StandingFileUnreadable: a file is missing or damaged.
            ColumnTypesDiffer: two files have types of one column without a common type.
            StorageFull: no space is left (Transient).
        """
        with ChangeSpill(self._keys, self._columns, self._spec.memory) as spill:
            rows = sum(item.rows for item in self._made_of.changes)
            for change in self._made_of.changes:
                for batch in self._batches(change.path):
                    spill.append(ordered_changes(batch, change.window, self._columns), rows)
            newest = spill.newest()
            found = self._matches(newest)
            return self._written(newest, found)

    def joined(self) -> MergedFiles:
        """Write the rows of all standing files to new ones, in their order.

        Raises:
            StandingFileUnreadable, ColumnTypesDiffer, StorageFull: as for `run`.
        """
        files = self._made_of.standing
        parts = self._parts(files, self._rows(files, (), {it.name: _Matches() for it in files}))
        rows = sum(part.rows for part in parts)
        expected = sum(self._counted(item) for item in files)
        if rows != expected:
            raise RowsLost(partition=str(self._made_of.partition), expected=expected, found=rows)
        self._storage.sync_all(self._root, [part.staged for part in parts])
        return MergedFiles((), parts)

    def without(self, erasures: Sequence[Erasure]) -> MergedFiles:
        """Write the rows of all standing files to new ones, without those that are erased.

        If none is left, there is a file without rows, which tells that its window was there.

        Raises:
            StandingFileUnreadable, ColumnTypesDiffer, StorageFull: as for `run`.
        """
        files = self._made_of.standing
        rows = self._rows(files, (), {it.name: _Matches() for it in files})
        erased = ErasedRows(erasures, self._columns)
        parts = self._parts(files, map(erased.left, rows), may_be_empty=True)
        self._storage.sync_all(self._root, [part.staged for part in parts])
        return MergedFiles((), parts)

    def _counted(self, item: StandingFile) -> int:
        with opened(self._storage, item.path, self._spec.form) as file:
            return file.rows

    def _batches(
        self,
        path: str,
        columns: Sequence[str] | None = None,
        told: pa.Schema | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a file, by default with all of its columns."""
        with opened(self._storage, path, self._spec.form, told) as file:
            names = file.schema.names if columns is None else columns
            yield from file.batches(names, batch_rows(file, names))

    def _matches(self, newest: Sequence[NewestChanges]) -> dict[str, _Matches]:
        """Find the rows of standing files that have a change; only their keys are read."""
        standing = self._made_of.standing
        found: dict[str, _Matches] = {item.name: _Matches() for item in standing}
        for number, changes in enumerate(newest):
            look = functools.partial(self._look, changes.index(), number, found)
            _each(look, standing)
            for item in standing:
                changes.met[found[item.name].places_of(number)] = True
        return found

    def _look(
        self, index: KeyIndex, number: int, found: dict[str, _Matches], item: StandingFile
    ) -> None:
        keys = pa.schema([self._columns.field(name) for name in self._keys])
        start = 0
        for batch in self._batches(item.path, self._keys):
            rows, places = index.find(conformed(batch, keys))
            found[item.name].add(start + rows, number, places)
            start += batch.num_rows

    def _written(self, newest: Sequence[NewestChanges], found: dict[str, _Matches]) -> MergedFiles:
        standing = self._made_of.standing
        has_new = any((item.stands & ~item.met).any() for item in newest)
        small = [
            item for item in standing if has_new and item.length < self._spec.limits.small_bytes
        ]
        changed = [item for item in standing if found[item.name].count and item not in small]
        jobs: list[tuple[tuple[StandingFile, ...], bool]] = [((it,), False) for it in changed]
        if has_new:
            jobs.append((tuple(small), True))

        def write(job: tuple[tuple[StandingFile, ...], bool]) -> tuple[PartFile, ...]:
            files, takes_new = job
            rows = self._rows(files, newest, found)
            return self._parts(files, _chained(rows, newest if takes_new else ()))

        parts = [part for made in _each(write, jobs) for part in made]
        self._storage.sync_all(self._root, [part.staged for part in parts])
        gone = {item.name for files, _ in jobs for item in files}
        kept = tuple(item.name for item in standing if item.name not in gone)
        return MergedFiles(kept, tuple(parts))

    def _rows(
        self,
        files: Sequence[StandingFile],
        newest: Sequence[NewestChanges],
        found: dict[str, _Matches],
    ) -> Iterator[pa.RecordBatch]:
        """Read standing files with their changes applied."""
        for item in files:
            matches = found[item.name].ordered()
            start = 0
            for batch in read_ahead(self._batches(item.path, told=item.columns), _AHEAD):
                yield matches.applied(newest, start, conformed(batch, self._columns))
                start += batch.num_rows

    def _parts(
        self,
        files: Sequence[StandingFile],
        batches: Iterator[pa.RecordBatch],
        *,
        may_be_empty: bool = False,
    ) -> tuple[PartFile, ...]:
        """Write rows to files whose names follow from their ingredients.

        Args:
            files: the ingredients.
            batches: the rows.
            may_be_empty: of no rows, write a file without rows.
        """
        unit = text_digest("\n".join([self._made_of.digest, *(item.name for item in files)]), 12)
        folder = layout.attempt_staged(unit, self._attempt)
        # Files of earlier plans may lack a column that came since.
        keys = self._spec.order.keys
        order = RowOrder(tuple(key for key in keys if key.column in self._columns.names))
        form = replace(self._spec.form, sorted_by=order.keys or None)
        writers = PartWriters(
            lambda _, path: self._open_file(path),
            lambda counter: layout.part_name(self._made_of.digest, unit, counter, form.extension),
            PartShape(tuple(self._columns.names), lambda _: EventTimes(), form, order),
            self._spec.limits,
        )
        to = Destination(self._made_of.partition, folder)
        try:
            for batch in batches:
                if batch.num_rows:
                    writers.append(to, batch)
            parts = writers.close()
        except BaseException:
            writers.abandon()
            raise
        if may_be_empty and not parts:
            name = layout.part_name(self._made_of.digest, unit, 0, form.extension)
            return (self._empty(f"{folder}/{name}", form),)
        return parts

    def _empty(self, staged: str, form: PartFormat) -> PartFile:
        file = PartFileWriter(self._open_file(staged), no_rows(self._columns), form)
        file.close()
        length, sha256 = file.target.length, file.target.sha256
        name = posixpath.basename(staged)
        return PartFile(self._made_of.partition, name, staged, length, sha256, 0, EventTimes())

    def _open_file(self, path: str) -> BinaryIO:
        full = posixpath.join(self._root, path)
        self._storage.make_dirs(posixpath.dirname(full), synced=False)
        return self._storage.open_new(full)


@dataclass
class _Matches:
    """The rows of one file that have a change."""

    rows: list[Integers] = field(default_factory=list)
    sets: list[Integers] = field(default_factory=list)
    """Of each of these rows: the set of changes."""
    places: list[Integers] = field(default_factory=list)
    """Of each of these rows: the place of its change in the set."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(map(len, self.rows))

    def add(self, rows: Integers, number: int, places: Integers) -> None:
        """Note rows whose changes are in one set."""
        if len(rows):
            self.rows.append(rows)
            self.sets.append(np.full(len(rows), number, np.int64))
            self.places.append(places)

    def places_of(self, number: int) -> Integers:
        """Return the places of the changes in one set."""
        found = [it for it, of in zip(self.places, self.sets, strict=True) if of[0] == number]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def ordered(self) -> _OrderedMatches:
        """Return them in the order of the rows."""
        nothing = np.zeros(0, np.int64)
        rows = np.concatenate([nothing, *self.rows])
        order = np.argsort(rows, kind="stable")
        return _OrderedMatches(
            rows[order],
            np.concatenate([nothing, *self.sets])[order],
            np.concatenate([nothing, *self.places])[order],
        )


@dataclass(frozen=True)
class _OrderedMatches:
    rows: Integers
    sets: Integers
    places: Integers

    def applied(
        self, newest: Sequence[NewestChanges], start: int, batch: pa.RecordBatch
    ) -> pa.RecordBatch:
        """Exchange the rows of a batch that have a change, or leave them out."""
        first, last = np.searchsorted(self.rows, [start, start + batch.num_rows])
        if first == last:
            return batch
        sets, places = self.sets[first:last], self.places[first:last]
        stays = np.zeros(len(sets), np.bool_)
        taken, order = [], []
        for number in np.unique(sets).tolist():
            mine = np.flatnonzero(sets == number)
            stays[mine] = newest[number].stands[places[mine]]
            taken.append(newest[number].rows.take(integer_column(places[mine])))
            order.append(mine)
        by = pa.concat_batches(taken)
        if len(taken) > 1:
            by = by.take(integer_column(np.argsort(np.concatenate(order), kind="stable")))
        return replaced(batch, self.rows[first:last] - start, by, stays)


def _chained(
    rows: Iterator[pa.RecordBatch], newest: Sequence[NewestChanges]
) -> Iterator[pa.RecordBatch]:
    yield from rows
    for changes in newest:
        yield from changes.new_rows(BATCH_ROWS)


def _published_columns(
    storage: Storage, columns: Mapping[str, pa.Schema | None], spec: MergeSpec
) -> pa.Schema:
    """Return the columns of the revision, which hold the values of all files."""
    schemas = []
    for path, told in columns.items():
        with opened(storage, path, spec.form, told) as file:
            schemas.append((path, file.schema))
    whole = spec.unify(schemas)
    return pa.schema([column for column in whole if column.name not in spec.unpublished])


def _each(do: Callable[[_Job], _Done], jobs: Sequence[_Job]) -> list[_Done]:
    """Do jobs in threads, as many as there are cores; Arrow works without the GIL."""
    workers = _workers(len(jobs))
    if workers == 1:
        return [do(job) for job in jobs]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(do, jobs))


def _workers(jobs: int) -> int:
    return max(1, min(jobs, len(os.sched_getaffinity(0))))
