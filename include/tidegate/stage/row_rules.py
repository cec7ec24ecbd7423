"""Apply the row rules of a pipeline to one batch: quarantine rows, hold partitions, or count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.physical.arrays import boolean_column, flags
from tidegate.predicate import Predicate
from tidegate.read.upsert import is_erased

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tidegate.config import RowRule
    from tidegate.physical.arrays import Flags


@dataclass(frozen=True)
class Judged:
    """The result of the rules for one batch."""

    kept: pa.RecordBatch
    quarantined: tuple[tuple[str, pa.RecordBatch], ...]
    """(rule, rows): a row that fails several rules is quarantined once, by the first of them."""
    held: dict[str, Flags]
    """Rule with effect `hold` → bool[kept.num_rows] of rows that fail it, if any does."""
    hits: dict[str, int]
    """Rule → rows that failed it: of all rows for `quarantine`, of the kept rows otherwise."""


class RowRules:
    """The rules of a pipeline for batches of one schema (PC-C05).

    What took the place of an erased row passes every rule.

    Args:
        rules: `rows` of the pipeline file.
        schema: the schema of the batches.

    Raises:
        PredicateInvalid: a rule's predicate does not fit the schema.
    """

    def __init__(self, rules: Sequence[RowRule], schema: pa.Schema) -> None:
        parsed = [
            (rule, Predicate.parse(rule.where, schema, f"rows.{rule.name}.where")) for rule in rules
        ]
        self._quarantine = [item for item in parsed if item[0].on_failure == "quarantine"]
        self._rest = [item for item in parsed if item[0].on_failure != "quarantine"]
        self._has_kinds = CHANGE_TYPE in schema.names
        self.names = tuple(rule.name for rule in rules)

    def judge(self, batch: pa.RecordBatch) -> Judged:
        """Return the rows that fail; only `quarantined` depends on the order of the rules."""
        hits: dict[str, int] = {}
        kept, quarantined = self._put_aside(batch, hits)
        held: dict[str, Flags] = {}
        for rule, predicate in self._rest:
            failed = self._failed(predicate, kept)
            hits[rule.name] = int(failed.sum())
            if rule.on_failure == "hold" and hits[rule.name]:
                held[rule.name] = failed
        return Judged(kept, quarantined, held, hits)

    def rejected(self, batch: pa.RecordBatch) -> Flags:
        """Return the rows that a rule puts into quarantine."""
        aside: Flags = np.zeros(batch.num_rows, dtype=np.bool_)
        for _, predicate in self._quarantine:
            aside |= self._failed(predicate, batch)
        return aside

    def _put_aside(
        self, batch: pa.RecordBatch, hits: dict[str, int]
    ) -> tuple[pa.RecordBatch, tuple[tuple[str, pa.RecordBatch], ...]]:
        aside: Flags = np.zeros(batch.num_rows, dtype=np.bool_)
        quarantined = []
        for rule, predicate in self._quarantine:
            failed = self._failed(predicate, batch)
            hits[rule.name] = int(failed.sum())
            first_here = failed & ~aside
            if first_here.any():
                quarantined.append((rule.name, _rows(batch, first_here)))
                aside |= failed
        return (_rows(batch, ~aside) if quarantined else batch), tuple(quarantined)

    def _failed(self, predicate: Predicate, batch: pa.RecordBatch) -> Flags:
        failed: Flags = ~flags(predicate.mask(batch))
        if self._has_kinds and failed.any():
            failed &= ~is_erased(batch.column(CHANGE_TYPE))
        return failed


def _rows(batch: pa.RecordBatch, wanted: Flags) -> pa.RecordBatch:
    return batch.filter(boolean_column(wanted))
