"""Read the changes of a window as one stream, in memory that does not grow with the commits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING

from tidegate.model.row_changes import can_cancel, change_ordinal, is_net
from tidegate.pipeline.load.balancing import check_balance
from tidegate.pipeline.load.exchanging import SpreadRows, read_bucket, write_spread
from tidegate.plan import Scale, bucket_count, is_small, row_width
from tidegate.read.exchange import KeyPlacement
from tidegate.storage import LocalStorage
from tidegate.storage.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from tidegate.config import SplitConfig
    from tidegate.model.exchange import SpreadFile
    from tidegate.model.plan import Piece
    from tidegate.model.settling import SettleRules
    from tidegate.pipeline.state.reading import Reading
    from tidegate.read.changes import Settler


@dataclass(frozen=True)
class ChangeStream:
    """Reads windows in this process; the same rows as the sub-splits of a plan stage.

    *Failure:* nothing is left behind: spilled rows are removed with the stream.
    """

    source: str
    """The table, for errors."""
    reading: Reading
    split: SplitConfig
    """Defines which commits are too large to be settled in memory."""

    def batches(
        self, pieces: Iterable[Piece], checks: Sequence[Piece] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Read pieces in order, the changes of each commit settled.

        Args:
            pieces: the pieces of one commit are consecutive.
            checks: files that the changes are checked with after they are read.

        Raises:
            ChangelogInconsistent: the check failed.
        """
        changes, balance = self._changes(pieces), self.reading.balance()
        yield from self.reading.shown(balance.changes(changes) if balance else changes)
        if balance is not None:
            balance.states(checks, self.reading.changes)
            check_balance(self.source, [balance.sums])

    def _changes(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        settler, rules = self.reading.settler(), self.reading.rules
        if settler is None or rules is None:
            yield from self.reading.changes(pieces)
            return
        for _, commit in groupby(pieces, change_ordinal):
            yield from self._settled(tuple(commit), settler, rules)

    def _settled(
        self, pieces: Sequence[Piece], settler: Settler, rules: SettleRules
    ) -> Iterator[pa.RecordBatch]:
        changes = self.reading.changes(pieces)
        if not can_cancel(pieces):
            yield from changes
        elif is_small(pieces, self.split, self._row_width):
            yield from settler.all(changes, net=is_net(pieces))
        else:
            if is_net(pieces):
                rules = replace(rules, identifiers=())
            with TemporaryFolder("changes") as folder:
                yield from _Spill(str(folder.path), settler, rules, self._buckets(pieces)).settled(
                    changes, self.reading.changes_schema
                )

    @property
    def _row_width(self) -> int:
        return row_width(self.reading.changes_schema)

    def _buckets(self, pieces: Sequence[Piece]) -> int:
        scale = Scale(self._row_width, self.split.open_cost)
        return bucket_count(sum(map(scale.weight, pieces)), self.split.target_size)


@dataclass(frozen=True)
class _Spill:
    """One large commit that is settled through files."""

    folder: str
    settler: Settler
    rules: SettleRules
    buckets: int

    def settled(
        self, changes: Iterator[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for exchange in range(1, self.rules.exchanges):
            file = self._write(f"{exchange}.arrow", changes, schema, by_row_id=True)
            changes = chain.from_iterable(map(self.settler.by_row_id, self._read(file)))
        file = self._write("last.arrow", changes, schema, by_row_id=False)
        for bucket in self._read(file):
            yield from self.settler.all(bucket, net=not self.rules.identifiers)

    def _write(
        self, name: str, changes: Iterator[pa.RecordBatch], schema: pa.Schema, *, by_row_id: bool
    ) -> SpreadFile | None:
        placement = KeyPlacement(self.rules.placed_by, self.buckets, by_row_id=by_row_id)
        rows = SpreadRows(changes, schema, placement)
        return write_spread(LocalStorage(), self.folder, name, rows)

    def _read(self, file: SpreadFile | None) -> Iterator[Iterator[pa.RecordBatch]]:
        if file is None:
            return
        for bucket in range(self.buckets):
            yield read_bucket(LocalStorage(), self.folder, file, bucket, self.buckets)
