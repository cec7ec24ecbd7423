"""Leave out erased rows while others are staged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.model.row_kind import CHANGE_TYPE, ERASED, RowKind
from tidegate.physical.arrays import boolean_column, repeated_text
from tidegate.read.erased_rows import ErasedRows
from tidegate.read.upsert import removes_row
from tidegate.stage.partition_split import PartitionComputer, columns_of
from tidegate.stage.row_rules import RowRules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.model.erasure import Erasure
    from tidegate.model.partition import Partition
    from tidegate.stage.sub_split import StageSpec


class LeftOut:
    """What becomes of erased rows among those that are staged.

    They are left out. Of changes that are merged by key, that alone would let an earlier row of the
    key stand that they replaced: they become removals of their key, with the values that are needed
    to stage them. Where these are all by which a row is erased, it is left out altogether, as is a
    row that a rule would have put aside.

    Args:
        erasures: whose rows are left out.
        schema: of the batches.
        spec: how they are staged.
        unpublished: columns of changes that published rows do not have.
        overwrites: whether rows replace their partitions, even if none is left.
    """

    def __init__(
        self,
        erasures: Sequence[Erasure],
        schema: pa.Schema,
        spec: StageSpec,
        unpublished: Iterable[str],
        *,
        overwrites: bool,
    ) -> None:
        times = [spec.event_time] if spec.event_time is not None else []
        self._needed = {*spec.keys, *columns_of(spec.fields), *times, *unpublished}
        turning: list[Erasure] = []
        whole: list[Erasure] = []
        for item in erasures:
            turns = bool(spec.keys) and not self._needed.issuperset(item.columns)
            (turning if turns else whole).append(item)
        self._turning = ErasedRows(turning, schema)
        self._whole = ErasedRows(whole, schema)
        self._rules = RowRules(spec.rules if self._turning.columns else (), schema)
        self._computer = None
        if overwrites:
            self._computer = PartitionComputer(
                schema, spec.fields, timezone=spec.timezone, default_name=spec.default_name
            )
        self.rows = 0
        """Rows that were left out so far."""
        self.partitions: set[Partition] = set()
        """Where they would have been, if rows replace their partitions."""
        self.schema = schema
        """Of the batches that are left."""
        if self._turning.columns:
            self.schema = self._with_kinds(schema)

    def left(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches without erased rows, each with at least one row."""
        for batch in batches:
            left = self._left(batch)
            if left.num_rows:
                yield left

    def _left(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._whole.columns and not self._turning.columns:
            return batch
        whole = self._whole.mask(batch)
        turned = self._turning.mask(batch) & ~whole
        if turned.any():
            # What a rule puts aside has never taken the place of another row.
            rejected = self._rules.rejected(batch.filter(boolean_column(turned)))
            whole[turned] = rejected
            turned[turned] = ~rejected
        erased = whole | turned
        self.rows += int(erased.sum())
        if self._computer is not None and erased.any():
            gone = batch.filter(boolean_column(erased))
            every = np.ones(gone.num_rows, np.bool_)
            self.partitions.update(it for it, _ in self._computer.split(gone).touched(every))
        if self._turning.columns:
            batch = self._as_deletes(batch, turned)
        stays = ~erased | turned
        return batch if stays.all() else batch.filter(boolean_column(stays))

    def _with_kinds(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with kinds of changes, and with NULL where a delete has no value."""
        columns = [
            column if column.name in self._needed else column.with_nullable(nullable=True)
            for column in schema
        ]
        if CHANGE_TYPE not in schema.names:
            columns.append(pa.field(CHANGE_TYPE, pa.string()))
        return pa.schema(columns, schema.metadata)

    def _as_deletes(self, batch: pa.RecordBatch, turned: np.ndarray) -> pa.RecordBatch:
        """Turn changes into deletes that tell nothing but what they delete."""
        gone, has_any, arrays = boolean_column(turned), turned.any(), []
        for column in self.schema:
            if column.name == CHANGE_TYPE:
                arrays.append(self._kinds(batch, turned).cast(column.type))
                continue
            values = batch.column(column.name)
            if has_any and column.name not in self._needed:
                values = pc.if_else(gone, pa.scalar(None, column.type), values)
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _kinds(self, batch: pa.RecordBatch, turned: np.ndarray) -> pa.Array:
        erased = repeated_text(ERASED, batch.num_rows)
        if CHANGE_TYPE not in batch.schema.names:
            insert = repeated_text(RowKind.INSERT.value, batch.num_rows)
            return pc.if_else(boolean_column(turned), erased, insert)
        kinds = batch.column(CHANGE_TYPE)
        becomes = turned & ~removes_row(kinds)
        return pc.if_else(boolean_column(becomes), erased.cast(kinds.type), kinds)
