"""Settle the changes of one commit: leave out carried-over rows, pair updates. Reads no file.

Hashes only rule out rows without a counterpart; equality is decided by the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import IdentifierNotUnique
from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.model.settling import COMMIT_SNAPSHOT_ID, ROW_ID, SettleCounts
from tidegate.physical.arrays import (
    Flags,
    Integers,
    boolean_column,
    flags,
    integer_column,
    integers,
    repeated_text,
)
from tidegate.read.codes import row_codes
from tidegate.read.hashed_codes import hashed_codes
from tidegate.read.row_hash import Hashes, hash_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.settling import SettleRules

_KINDS = (RowKind.DELETE, RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER)
_DELETE, _INSERT, _BEFORE, _AFTER = range(4)
_HASHED_ROWS = 1 << 16
"""Rows that are hashed at a time, so that intermediate results stay in the processor's cache."""

_Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Settled:
    """The changes that remain, in input order."""

    changes: pa.Table
    counts: SettleCounts


def settle(changes: pa.Table, rules: SettleRules) -> Settled:
    """Settle all changes of one commit, or those whose keys no other changes of it have.

    Args:
        changes: with `_change_type`; rows that are updates already are passed on.
        rules: how rows are compared and paired.

    Raises:
        IdentifierNotUnique: a key has several changes, and the rules are strict.
    """
    settling = _Settling(changes, rules)
    carried_over = settling.leave_out_carried_over() if rules.carry_over else 0
    if rules.identifiers:
        settling.pair_by_row_id()
    unpaired = settling.pair_by_key() if rules.identifiers else 0
    return Settled(settling.changes, SettleCounts(carried_over, unpaired))


def settle_by_row_id(changes: pa.Table, rules: SettleRules) -> Settled:
    """Settle by `_row_id` alone, before rows with equal keys are brought together."""
    settling = _Settling(changes, rules)
    carried_over = settling.leave_out_same_row_id() if rules.carry_over else 0
    settling.pair_by_row_id()
    return Settled(settling.changes, SettleCounts(carried_over))


class _Settling:
    """Changes while they are settled."""

    def __init__(self, changes: pa.Table, rules: SettleRules) -> None:
        self._changes = changes
        self._rules = rules
        self._kinds = _read_kinds(changes.column(CHANGE_TYPE))

    @property
    def changes(self) -> pa.Table:
        """The remaining rows, with their kinds."""
        names = pa.concat_arrays([repeated_text(kind, 1) for kind in _KINDS])
        column = names.take(integer_column(self._kinds.astype(np.int64)))
        index = self._changes.schema.get_field_index(CHANGE_TYPE)
        return self._changes.set_column(index, self._changes.schema.field(index), column)

    def leave_out_carried_over(self) -> int:
        """Leave out equal rows of both kinds, as many as there are pairs (ICE-3.14)."""
        hashes = self._hashes(self._rules.compared)
        rows = self._with_counterpart(hashes)
        if not len(rows):
            return 0
        codes = self._codes(self._rules.compared, rows, hashes)
        inserts = self._kinds[rows] == _INSERT
        gone = np.zeros(len(rows), dtype=np.bool_)
        known = np.zeros(len(rows), dtype=np.bool_)
        if self._rules.row_ids:
            identities = _one_array(self._changes.column(ROW_ID).take(integer_column(rows)))
            known = flags(identities.is_valid())
            where = np.flatnonzero(known)
            pairs = integers(
                row_codes([integer_column(codes[where]), identities.take(integer_column(where))])
            )
            gone[where] = _cancelled(pairs, inserts[where], np.zeros(len(where), dtype=np.bool_))
        left = np.flatnonzero(~gone)
        # Two rows with different identities are different rows, whatever their values.
        gone[left] = _cancelled(codes[left], inserts[left], known[left])
        return self._leave_out(rows[gone])

    def leave_out_same_row_id(self) -> int:
        """Leave out equal rows of both kinds with the same `_row_id`."""
        columns = (*self._rules.compared, ROW_ID)
        hashes = self._hashes(columns)
        rows = self._with_counterpart(hashes, self._has_row_id())
        if not len(rows):
            return 0
        gone = _cancelled(
            self._codes(columns, rows, hashes),
            self._kinds[rows] == _INSERT,
            np.zeros(len(rows), dtype=np.bool_),
        )
        return self._leave_out(rows[gone])

    def pair_by_row_id(self) -> None:
        """Make updates of one DELETE and one INSERT with the same `_row_id` (ICE-3.15)."""
        if self._rules.row_ids:
            self._pair((ROW_ID,), self._has_row_id())

    def pair_by_key(self) -> int:
        """Make updates of one DELETE and one INSERT with the same key; count the rows with more."""
        several = self._pair(self._rules.identifiers)
        if len(several) and self._rules.strict:
            self._refuse(several)
        return len(several)

    def _pair(self, columns: Sequence[str], among: Flags | None = None) -> Integers:
        """Pair rows; return those with both kinds of which one occurs more than once."""
        hashes = self._hashes(columns)
        rows = self._with_counterpart(hashes, among)
        if not len(rows):
            return rows
        codes = self._codes(columns, rows, hashes)
        inserts = self._kinds[rows] == _INSERT
        deleted, inserted = _counts(codes, ~inserts), _counts(codes, inserts)
        one_of_each = ((deleted == 1) & (inserted == 1))[codes]
        several: Flags = ((deleted > 0) & (inserted > 0))[codes] & ~one_of_each
        # The numbers of updates follow those of DELETE and INSERT in the same order.
        self._kinds[rows[one_of_each]] += _BEFORE
        left: Integers = rows[several]
        return left

    def _refuse(self, several: Integers) -> None:
        first = self._changes.slice(int(several[0]), 1)
        key = {name: first.column(name)[0].as_py() for name in self._rules.identifiers}
        raise IdentifierNotUnique(
            snapshot=str(first.column(COMMIT_SNAPSHOT_ID)[0].as_py()),
            key=", ".join(f"{name} = {found!r}" for name, found in key.items()),
            changes=len(several),
        )

    def _has_row_id(self) -> Flags:
        return flags(_one_array(self._changes.column(ROW_ID).is_valid()))

    def _hashes(self, columns: Sequence[str]) -> Hashes:
        found = [
            hash_rows(batch.columns, batch.num_rows)
            for batch in self._changes.select(columns).to_batches(_HASHED_ROWS)
        ]
        return np.concatenate([np.zeros(0, np.uint64), *found])

    def _codes(self, columns: Sequence[str], rows: Integers, hashes: Hashes) -> Integers:
        taken = self._changes.select(columns)
        if len(rows) < taken.num_rows:
            taken = taken.take(integer_column(rows))
        return hashed_codes([_one_array(column) for column in taken.columns], hashes[rows])

    def _with_counterpart(self, hashes: Hashes, among: Flags | None = None) -> Integers:
        """Return the rows whose hash also occurs in the other kind, in their order."""
        chosen = np.True_ if among is None else among
        deletes = np.flatnonzero((self._kinds == _DELETE) & chosen)
        inserts = np.flatnonzero((self._kinds == _INSERT) & chosen)
        deletes = deletes[_are_in(hashes[deletes], hashes[inserts])]
        inserts = inserts[_are_in(hashes[inserts], hashes[deletes])]
        return np.sort(np.concatenate([deletes, inserts]))

    def _leave_out(self, rows: Integers) -> int:
        if len(rows):
            kept = np.ones(self._changes.num_rows, dtype=np.bool_)
            kept[rows] = False
            self._changes = self._changes.filter(boolean_column(kept))
            self._kinds = self._kinds[kept]
        return len(rows)


def _read_kinds(column: pa.ChunkedArray) -> _Kinds:
    found = [np.zeros(0, np.int8)]
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        names = np.fromiter(
            (_KINDS.index(RowKind(name)) for name in encoded.dictionary.to_pylist()), np.int8
        )
        found.append(names[integers(encoded.indices)])
    return np.concatenate(found)


def _are_in(hashes: Hashes, known: Hashes) -> Flags:
    if not len(hashes) or not len(known):
        return np.zeros(len(hashes), dtype=np.bool_)
    columns = [integer_column(values.view(np.int64)) for values in (hashes, known)]
    return flags(pc.is_in(columns[0], value_set=columns[1]))


def _counts(codes: Integers, chosen: Flags) -> Integers:
    return np.bincount(codes[chosen], minlength=int(codes.max()) + 1)


def _cancelled(codes: Integers, inserts: Flags, known: Flags) -> Flags:
    """Return which rows have a counterpart of the other kind, each used once, the first ones first.

    Args:
        codes: rows with the same number are equal.
        inserts: whether a row is an INSERT; else it is a DELETE.
        known: whether a row has an identity of its own; two rows with one are no counterparts.
    """
    if not len(codes):
        return np.zeros(0, dtype=np.bool_)
    counts = [
        _counts(codes, (inserts == kind) & (known == identity))
        for kind in (False, True)
        for identity in (False, True)
    ]
    if not known.any():
        # Without identities there are only two sorts of rows.
        fewer = np.minimum(counts[0], counts[2])
        quotas = [fewer, fewer, fewer, fewer]
    else:
        quotas = _quotas(*counts)
    sorts = inserts * 2 + known
    cancelled: Flags = _ranks(codes * 4 + sorts) < np.stack(quotas)[sorts, codes]
    return cancelled


def _quotas(
    deleted: Integers, deleted_known: Integers, inserted: Integers, inserted_known: Integers
) -> list[Integers]:
    """Return how many rows of each sort have a counterpart, at most."""
    first = np.minimum(deleted_known, inserted)
    unknown_left = inserted - first
    second = np.minimum(deleted, unknown_left + inserted_known)
    of_unknown = np.minimum(second, unknown_left)
    return [second, first, first + of_unknown, second - of_unknown]


def _ranks(keys: Integers) -> Integers:
    """Number the rows with the same key from 0."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
    lengths = np.diff(np.concatenate([begins, [len(keys)]]))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.arange(len(keys)) - np.repeat(begins, lengths)
    return ranks


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(column.type)
    if wide is not None and column.nbytes > np.iinfo(np.int32).max:
        column = column.cast(wide)
    return column.combine_chunks()
