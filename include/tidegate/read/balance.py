"""Sum up changes and states, to check that state before − DELETE + INSERT = state after.

This is what `verify_changelog` checks (ICE-3.17): with sums, because a bag may not fit into memory.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tidegate.model.bag_sum import BagSum
from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.model.settling import COMMIT_SNAPSHOT_ID
from tidegate.physical.arrays import integers
from tidegate.read.row_hash import hash_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tidegate.model.plan import Piece
    from tidegate.read.changes import ReadPieces
    from tidegate.read.row_hash import Hashes

_DELETED = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
_INSERTED = (RowKind.INSERT, RowKind.UPDATE_AFTER)
"""An UPSERT does not say which row it replaced, so its sum cannot be checked."""


class Balance:
    """The sums of the rows seen so far, commit by commit."""

    def __init__(self, compared: Sequence[str]) -> None:
        """Begin with nothing; `compared` are the columns in which equal rows agree."""
        self._compared = tuple(compared)
        self._sums: dict[str, BagSum] = defaultdict(BagSum)

    @property
    def sums(self) -> Mapping[str, BagSum]:
        """Commit → its sum, which is zero if the commit is consistent and complete."""
        return dict(self._sums)

    def changes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass changes on and add them up: inserts minus deletes."""
        for batch in batches:
            hashes = self._hashes(batch)
            commits = integers(batch.column(COMMIT_SNAPSHOT_ID))
            kinds = batch.column(CHANGE_TYPE).dictionary_encode()
            names = kinds.dictionary.to_pylist()
            indices = integers(kinds.indices)
            deleted = np.isin(indices, [names.index(it) for it in _DELETED if it in names])
            inserted = np.isin(indices, [names.index(it) for it in _INSERTED if it in names])
            for commit in np.unique(commits).tolist():
                of_commit = commits == commit
                known = self._sums[str(commit)].plus(_sum(hashes[of_commit & inserted]))
                self._sums[str(commit)] = known.minus(_sum(hashes[of_commit & deleted]))
            yield batch

    def states(self, pieces: Iterable[Piece], read: ReadPieces) -> None:
        """Subtract the states of pieces that are only read for this check."""
        for piece in pieces:
            state = piece.slice.check
            if state is None:
                continue
            commit = str(state.commit)
            for batch in read((piece,)):
                found, known = _sum(self._hashes(batch)), self._sums[commit]
                self._sums[commit] = known.plus(found) if state.is_before else known.minus(found)

    def _hashes(self, batch: pa.RecordBatch) -> Hashes:
        return hash_rows([batch.column(name) for name in self._compared], batch.num_rows)


def _sum(hashes: Hashes) -> BagSum:
    return BagSum(len(hashes), int(hashes.sum(dtype=np.uint64)))
