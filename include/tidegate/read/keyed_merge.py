"""Merge the records of a key: among themselves first, then the result with the row that stood.

Knows no format. A record is a whole row, a row of which some columns are missing, or a delete.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.physical.arrays import (
    boolean_column,
    flags,
    integer_column,
    integers,
    where_true,
)
from tidegate.read.key_lookup import KeyLookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Indices = NDArray[np.int64]

_UNORDERED_RANK = -1


@dataclass(frozen=True, eq=False)
class KeyedRecords:
    """Records in the order in which they were written; all arrays have one value per record."""

    rows: pa.Table
    """Their columns; NULL in deletes, and where a column is missing."""
    keys: pa.Array
    deleted: Flags
    marked: Flags
    """Records whose values are to be recognized in the result."""
    ordering: tuple[pa.Array, ...] = ()
    """The columns that decide which record wins, without NULL where they count, and without floats,
    which formats order differently; empty: the later one."""
    unordered: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Records that win over everything older, and lose to everything newer; empty if there are no
    ordering columns."""
    barred: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Of merged records: whether an older unordered one did not let anything before it count; empty
    if there are no ordering columns."""
    missing: Mapping[str, Flags] = field(default_factory=dict)
    """Column → records that do not have it, whose value is taken from the record that loses."""

    def __len__(self) -> int:
        return len(self.deleted)

    @property
    def size_bytes(self) -> int:
        """The memory of rows, keys and ordering columns; flags are small beside them."""
        return int(self.rows.nbytes + self.keys.nbytes + sum(it.nbytes for it in self.ordering))

    def take(self, indices: Indices) -> KeyedRecords:
        """Return some of the records."""
        wanted = integer_column(indices)
        return KeyedRecords(
            rows=self.rows.take(wanted),
            keys=self.keys.take(wanted),
            deleted=self.deleted[indices],
            marked=self.marked[indices],
            ordering=tuple(values.take(wanted) for values in self.ordering),
            unordered=self.unordered[indices] if self.ordering else self.unordered,
            barred=self.barred[indices] if len(self.barred) else self.barred,
            missing={name: lacks[indices] for name, lacks in self.missing.items()},
        )


def newest_of_each_key(records: KeyedRecords) -> KeyedRecords:
    """Merge the records of each key among themselves (HUDI-M6, M8 to M10).

    Without ordering columns the later record wins. With them the greater one wins, of equal ones
    the later; what is older than an unordered record does not count.

    Returns:
        One record per key, in no particular order.
    """
    if not len(records):
        return records
    codes = _codes(records.keys)
    if codes.max() + 1 == len(records):
        # Nothing to merge: mostly the records of one write.
        return replace(records, barred=records.unordered)
    places = np.arange(len(records))
    if not records.ordering:
        return _picked(records, codes, np.argsort(codes, kind="stable"))
    rank = _ranks(records.ordering)
    rank[records.unordered] = _UNORDERED_RANK
    barrier = np.full(codes.max() + 1, -1, np.int64)
    np.maximum.at(barrier, codes[records.unordered], places[records.unordered])
    counting = np.flatnonzero(places >= barrier[codes])
    # Both numbers are below the number of records, and so their combination below its square.
    combined = codes[counting] * (len(records) + 1) + rank[counting]
    order = counting[np.argsort(combined, kind="stable")]
    made = _picked(records, codes, order, rank)
    ends = np.flatnonzero(np.append(np.diff(codes[order]) != 0, True))
    return replace(made, barred=barrier[codes[order][ends]] >= 0)


class Applied(NamedTuple):
    """What became of rows that met the records of their keys."""

    rows: pa.Table
    """Those that stand afterwards."""
    marked: Flags
    """Which of them have marked values."""
    removing: Indices
    """The deletes that took a row away, as indices of the records."""


class StandingRows:
    """Applies merged records to the rows that stood before them, batch after batch.

    Only the first row of a key meets the record of that key (HUDI-M14); the records that no row met
    are what is left at the end.
    """

    def __init__(self, newest: KeyedRecords) -> None:
        """Prepare.

        Args:
            newest: one record per key.
        """
        self._newest = newest
        self._lookup = KeyLookup(newest.keys)
        self._met = np.zeros(len(newest), np.bool_)

    def apply(self, standing: KeyedRecords) -> Applied:
        """Merge rows with the records of their keys.

        Args:
            standing: rows with the columns, and ordering columns of the types, of the records.
        """
        places, indices = self._lookup.find(standing.keys)
        if not len(places):
            return Applied(standing.rows, standing.marked, np.zeros(0, np.int64))
        first = np.sort(np.unique(indices, return_index=True)[1])
        first = first[~self._met[indices[first]]]
        places, indices = places[first], indices[first]
        self._met[indices] = True
        wins = self._wins(places, indices, standing)
        marked = standing.marked
        if len(self._newest.barred):
            # The row was deleted, and is back although the newer record lost (HUDI-M10).
            back = ~wins & self._newest.barred[indices] & self._newest.marked[indices]
            marked = marked.copy()
            marked[places[back]] = True
        exists = ~self._newest.deleted[indices]
        stays = np.ones(len(standing), np.bool_)
        stays[places[wins]] = False
        changed = wins & exists
        made = [_over(self._newest, indices[changed], standing, places[changed])]
        if standing.missing:
            # A row that wins takes what it lacks from the record that loses (HUDI-M13).
            filled = ~wins & exists
            stays[places[filled]] = False
            made.append(_over(standing, places[filled], self._newest, indices[filled]))
        kept = standing.rows.filter(boolean_column(stays))
        return Applied(
            pa.concat_tables([kept, *(rows for rows, _ in made)]),
            np.concatenate([marked[stays], *(marks for _, marks in made)]),
            indices[wins & ~exists],
        )

    def records(self, indices: Indices) -> KeyedRecords:
        """Return some of the records."""
        return self._newest.take(indices)

    def rest(self) -> KeyedRecords:
        """Return the records whose keys no row had, deletes included."""
        return self._newest.take(np.flatnonzero(~self._met))

    def meet(self, keys: pa.Array) -> None:
        """Note that rows of these keys stand elsewhere, so that their records are not left over."""
        _, indices = self._lookup.find(keys)
        self._met[indices] = True

    def _wins(self, places: Indices, indices: Indices, standing: KeyedRecords) -> Flags:
        newest = self._newest
        wins = np.ones(len(places), np.bool_)
        if not newest.ordering:
            return wins
        at, of = integer_column(places), integer_column(indices)
        for new, old in reversed(list(zip(newest.ordering, standing.ordering, strict=True))):
            # NULL only where one of them is unordered, which is decided at the end.
            one, other = new.take(of), old.take(at)
            wins = where_true(pc.greater(one, other)) | (where_true(pc.equal(one, other)) & wins)
        return wins | newest.unordered[indices] | standing.unordered[places]


def _over(
    winners: KeyedRecords, places: Indices, losers: KeyedRecords, others: Indices
) -> tuple[pa.Table, Flags]:
    """Return the winners of pairs, completed by what they lack, and which have marked values."""
    won = winners.take(places)
    if not any(lacks.any() for lacks in won.missing.values()):
        return won.rows, won.marked
    lost = losers.rows.take(integer_column(others))
    made, marks = won.rows, won.marked.copy()
    for name, lacks in won.missing.items():
        position = made.column_names.index(name)
        values = pc.if_else(boolean_column(lacks), lost.column(name), made.column(name))
        made = made.set_column(position, made.schema.field(position), values)
        supplied = lacks & flags(lost.column(name).is_valid().combine_chunks())
        marks |= supplied & losers.marked[others]
    return made, marks


def _codes(keys: pa.Array) -> Indices:
    encoded = keys.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    return integers(encoded.indices).astype(np.int64)


def _ranks(ordering: tuple[pa.Array, ...]) -> Indices:
    """Number ordering values so that greater ones have greater numbers, and equal ones the same."""
    combined = np.zeros(len(ordering[0]), np.int64)
    for values in ordering:
        # NULL is there only where the record is unordered.
        plain = values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values
        ranked = pc.rank(plain, "ascending", tiebreaker="dense")
        ranks = integers(ranked).astype(np.int64)
        _, combined = np.unique(combined * (ranks.max() + 1) + ranks, return_inverse=True)
    return combined.astype(np.int64)


def _picked(
    records: KeyedRecords, codes: Indices, order: Indices, rank: Indices | None = None
) -> KeyedRecords:
    """Return the last record of each key in an order, completed by those before it."""
    sorted_codes = codes[order]
    last = np.flatnonzero(np.append(sorted_codes[1:] != sorted_codes[:-1], True))
    winners = order[last]
    if not any(lacks.any() for lacks in records.missing.values()):
        return records.take(winners)
    return _completed(records, codes, winners, rank)


def _completed(
    records: KeyedRecords, codes: Indices, winners: Indices, rank: Indices | None
) -> KeyedRecords:
    """Fill the missing columns of winners from the records that they won over (HUDI-M12)."""
    sources = {name: winners.copy() for name in records.missing}
    lacks = np.zeros(len(records), np.bool_)
    for lacking in records.missing.values():
        lacks |= lacking
    place_of = np.full(codes.max() + 1, -1, np.int64)
    place_of[codes[winners]] = np.arange(len(winners))
    # Only keys of which a record lacks a column, and that have others to take it from; each is
    # folded record by record.
    several = np.bincount(codes) > 1
    concerned = np.unique(codes[lacks & several[codes]])
    members = np.flatnonzero(np.isin(codes, concerned))
    members = members[np.lexsort((members, codes[members]))]
    bounds = np.flatnonzero(np.diff(codes[members])) + 1
    marks = records.marked[winners].copy()
    for group in np.split(members, bounds) if len(members) else ():
        place = place_of[codes[group[0]]]
        folded = _folded(records, group, rank)
        for name, source in folded.items():
            sources[name][place] = source
        marks[place] |= any(records.marked[source] for source in folded.values())
    made = records.take(winners)
    rows = made.rows
    for name, source in sources.items():
        position = rows.column_names.index(name)
        values = records.rows.column(name).take(integer_column(source))
        rows = rows.set_column(position, rows.schema.field(position), values)
    missing = {name: records.missing[name][source] for name, source in sources.items()}
    return replace(made, rows=rows, marked=marks, missing=missing)


def _folded(records: KeyedRecords, group: Indices, rank: Indices | None) -> dict[str, Any]:
    """Return of which record of one key each column comes, in written order of the records."""
    names = list(records.missing)
    current = group[0]
    sources = dict.fromkeys(names, current)
    top = np.int64(-1) if rank is None else rank[current]
    for record in group[1:]:
        wins = rank is None or _beats(records, rank, record, top)
        if wins:
            is_whole = bool(records.deleted[record] or records.deleted[current])
            for name in names:
                if is_whole or not records.missing[name][record]:
                    sources[name] = record
            current = record
            top = np.int64(-1) if rank is None else rank[record]
        elif not records.deleted[record] and not records.deleted[current]:
            for name in names:
                if records.missing[name][sources[name]] and not records.missing[name][record]:
                    sources[name] = record
    return sources


def _beats(records: KeyedRecords, rank: Indices, record: np.int64, top: np.int64) -> bool:
    # An unordered one has the lowest rank of all, so that whatever is newer wins over it.
    return bool(records.unordered[record] or rank[record] >= top)
