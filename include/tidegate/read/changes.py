"""Read the changes of commits and settle them, each commit on its own, in memory.

The caller decides which rows are settled together: a commit, or a bucket of one (ICE-3.13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.model.plan import Piece
from tidegate.model.row_changes import can_cancel, change_ordinal, is_net
from tidegate.model.settling import SettleCounts
from tidegate.physical import BATCH_ROWS
from tidegate.read.settle import settle, settle_by_row_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.settling import SettleRules

ReadPieces = Callable[[Sequence[Piece]], Iterator[pa.RecordBatch]]


class Settler:
    """Settles changes, and counts the rows that were left out or not paired."""

    def __init__(self, rules: SettleRules, schema: pa.Schema) -> None:
        """Prepare.

        Args:
            rules: how rows are compared and paired.
            schema: of the changes, with the columns that the rules need.
        """
        self._rules = rules
        self._schema = schema
        self.counts = SettleCounts()

    def commits(self, pieces: Iterable[Piece], read: ReadPieces) -> Iterator[pa.RecordBatch]:
        """Read whole commits, one after the other, and settle those whose rows may cancel.

        Args:
            pieces: the pieces of one commit are consecutive.
            read: returns the changes of pieces.
        """
        for _, commit in groupby(pieces, change_ordinal):
            of_commit = tuple(commit)
            changes = read(of_commit)
            if can_cancel(of_commit):
                changes = self.all(changes, net=is_net(of_commit))
            yield from changes

    def all(
        self, changes: Iterable[pa.RecordBatch], *, net: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Settle changes of one commit whose keys no other changes of it have.

        Args:
            changes: all changes of a commit, or of a bucket.
            net: whether they are the difference of two states, whose updates are not paired
                (ICE-3.18).

        Raises:
            IdentifierNotUnique: a key has several changes, and the rules are strict.
        """
        rules = replace(self._rules, identifiers=()) if net else self._rules
        settled = settle(pa.Table.from_batches(list(changes), self._schema), rules)
        self.counts = self.counts.plus(settled.counts)
        yield from settled.changes.to_batches(BATCH_ROWS)

    def by_row_id(self, changes: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Settle only by row id; rows with equal keys are brought together later."""
        table = pa.Table.from_batches(list(changes), self._schema)
        settled = settle_by_row_id(table, self._rules)
        self.counts = self.counts.plus(settled.counts)
        yield from settled.changes.to_batches(BATCH_ROWS)
