"""Rule out manifests and files that cannot hold a row the filter passes (ICE-4.3, 5.14).

Only a hint: the reader evaluates the whole filter on every row again, so whatever is doubtful is
kept. This module and `unparsed` use private parts of pyiceberg (ICE-9.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    Or,
    Reference,
    SetPredicate,
    UnaryPredicate,
    UnboundPredicate,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    bind,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
    rewrite_not,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import UnknownTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyparsing import ParseException

from tidegate.source.iceberg.bounds import UNREADABLE
from tidegate.source.iceberg.matching import partition_key
from tidegate.source.iceberg.tally import FILES_BY_METRICS, FILES_BY_PARTITION

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec

    from tidegate.source.iceberg.entries import Entry

# A filter means the same to pyiceberg and to the reader for these only: floats sort NaN
# differently, decimals round literals, and the rest has no literals in filters.
_SAFE_LITERALS: Mapping[type[IcebergType], tuple[type, ...]] = {
    BooleanType: (bool,),
    IntegerType: (int,),
    LongType: (int,),
    StringType: (str,),
    DateType: (str,),
    TimestampType: (str,),
    TimestamptzType: (str,),
}
_NOT_USABLE = (ParseException, ValueError, TypeError, NotImplementedError)
# pyiceberg takes "_" in a pattern for itself, and cannot tell afterwards that a LIKE was written.
_PATTERN = re.compile(r"\blike\b", re.IGNORECASE)
# Whole literals, so that nothing is taken for one inside a text.
_LITERAL = re.compile(r"(?:\b(date|timestamp)\s*)?('(?:[^']|'')*')", re.IGNORECASE)


class Pruning:
    """What a filter text allows to leave unread in one table."""

    def __init__(
        self, schema: Schema, specs: Mapping[int, PartitionSpec], text: str | None
    ) -> None:
        """Prepare the filter; one that pyiceberg cannot parse, or does not bind, prunes nothing."""
        self._schema = schema
        self._specs = specs
        self._filter = _prunable(schema, text)
        self.is_active = not isinstance(self._filter, AlwaysTrue)
        """Whether anything can be ruled out."""
        self.metric_ids = frozenset(_field_ids(schema, self._filter))
        """Columns whose metrics the filter is compared with."""
        self._metrics = _InclusiveMetricsEvaluator(schema, self._filter) if self.is_active else None
        self._manifests: dict[int, Callable[[ManifestFile], bool]] = {}
        self._partitions: dict[int, Callable[[Any], bool]] = {}
        self._kept_partitions: dict[Hashable, bool] = {}

    def keeps_manifest(self, manifest: ManifestFile) -> bool:
        """Say whether a manifest's partition summaries leave room for a passing row."""
        spec_id = manifest.partition_spec_id
        if not self.is_active or not self._is_known(spec_id):
            return True
        if spec_id not in self._manifests:
            projected = inclusive_projection(self._schema, self._specs[spec_id])(self._filter)
            self._manifests[spec_id] = manifest_evaluator(
                self._specs[spec_id], self._schema, projected
            )
        try:
            return self._manifests[spec_id](manifest)
        except UNREADABLE:
            return True

    def keeps_partition(self, entry: Entry) -> bool:
        """Say whether a file's partition leaves room for a passing row."""
        if not self.is_active or not self._is_known(entry.spec_id):
            return True
        key = partition_key(entry.spec_id, entry.partition)
        if key not in self._kept_partitions:
            evaluate = self._partition_evaluator(entry.spec_id)
            self._kept_partitions[key] = evaluate(Record(*entry.partition))
        return self._kept_partitions[key]

    def keep(self, entries: Sequence[Entry], tally: Counter[str]) -> Sequence[Entry]:
        """Leave out files whose partition or column metrics leave no room for a passing row.

        Args:
            entries: data files.
            tally: is told how many were left out, by cause (ICE-5.18).
        """
        if self._metrics is None:
            return entries
        within = [entry for entry in entries if self.keeps_partition(entry)]
        kept = [entry for entry in within if self._may_pass(self._metrics, entry)]
        tally[FILES_BY_PARTITION] += len(entries) - len(within)
        tally[FILES_BY_METRICS] += len(within) - len(kept)
        return kept

    @staticmethod
    def _may_pass(evaluator: _InclusiveMetricsEvaluator, entry: Entry) -> bool:
        try:
            return entry.metrics is None or evaluator.eval(cast("DataFile", entry.metrics))
        except UNREADABLE:
            return True

    def _is_known(self, spec_id: int) -> bool:
        fields = self._specs[spec_id].fields
        return bool(fields) and not any(
            isinstance(part.transform, UnknownTransform) for part in fields
        )

    def _partition_evaluator(self, spec_id: int) -> Callable[[Any], bool]:
        if spec_id not in self._partitions:
            spec = self._specs[spec_id]
            projected = inclusive_projection(self._schema, spec)(self._filter)
            partition_schema = Schema(*spec.partition_type(self._schema).fields)
            self._partitions[spec_id] = expression_evaluator(
                partition_schema, projected, case_sensitive=True
            )
        return self._partitions[spec_id]


def _prunable(schema: Schema, text: str | None) -> BooleanExpression:
    if not text or _PATTERN.search(text):
        return AlwaysTrue()
    try:
        expression = rewrite_not(parse(_LITERAL.sub(_plain_literal, text)))
    except _NOT_USABLE:
        return AlwaysTrue()
    return _weaken(schema, expression)


def _plain_literal(found: re.Match[str]) -> str:
    """Write a date or time as pyiceberg reads it, which is an ISO text without its type."""
    kind, literal = found.groups()
    return literal.replace(" ", "T", 1) if kind and kind.lower() == "timestamp" else literal


def _weaken(schema: Schema, expression: BooleanExpression) -> BooleanExpression:
    """Replace what may mean something else to the reader by what is always true; NOT is gone."""
    if isinstance(expression, And):
        return And(_weaken(schema, expression.left), _weaken(schema, expression.right))
    if isinstance(expression, Or):
        return Or(_weaken(schema, expression.left), _weaken(schema, expression.right))
    if isinstance(expression, UnboundPredicate) and isinstance(expression.term, Reference):
        column = _spelled(schema, expression.term.name)
        if column is None:
            return AlwaysTrue()
        named = _renamed(expression, column)
        return named if _is_safe(schema, named, column) else AlwaysTrue()
    return AlwaysTrue()


def _renamed(predicate: UnboundPredicate, column: str) -> UnboundPredicate:
    kind, term = cast("Any", type(predicate)), Reference(column)
    if isinstance(predicate, SetPredicate):
        return cast("UnboundPredicate", kind(term, predicate.literals))
    if isinstance(predicate, LiteralPredicate):
        return cast("UnboundPredicate", kind(term, predicate.literal))
    return cast("UnboundPredicate", kind(term))


def _spelled(schema: Schema, asked: str) -> str | None:
    """Name a column as the table does, as the reader finds it; None where two may be meant."""
    if asked in schema.column_names:
        return asked
    # Whoever wants exact names has the filter refused before anything is read.
    fits = [name for name in schema.column_names if name.lower() == asked.lower()]
    return fits[0] if len(fits) == 1 else None


def _field_ids(schema: Schema, expression: BooleanExpression) -> Iterator[int]:
    if isinstance(expression, And | Or):
        yield from _field_ids(schema, expression.left)
        yield from _field_ids(schema, expression.right)
    elif isinstance(expression, UnboundPredicate) and isinstance(expression.term, Reference):
        yield schema.find_field(expression.term.name).field_id


def _is_safe(schema: Schema, predicate: UnboundPredicate, column: str) -> bool:
    try:
        bind(schema, predicate, case_sensitive=True)
        kind = schema.find_type(column)
    except _NOT_USABLE:
        return False
    allowed = _SAFE_LITERALS.get(type(kind), ())
    if isinstance(predicate, UnaryPredicate):
        return bool(allowed)
    if isinstance(predicate, LiteralPredicate):
        return type(predicate.literal.value) in allowed
    return isinstance(predicate, SetPredicate) and all(
        type(item.value) in allowed for item in predicate.literals
    )
