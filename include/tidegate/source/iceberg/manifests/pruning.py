"""Rule out manifests and files that cannot have a row that passes the filter (ICE-4.3, 5.14).

This is only a hint: the reader evaluates the whole filter on every row again, so doubtful files are
kept. This module and `unparsed` use private parts of pyiceberg (ICE-9.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThan,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Or,
    Reference,
    UnboundPredicate,
)
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.schema import Schema
from pyiceberg.transforms import UnknownTransform
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, NestedField, StructType

from tidegate.source.iceberg.manifests.bounds import UNREADABLE
from tidegate.source.iceberg.manifests.matching import partition_key
from tidegate.source.iceberg.manifests.prunable import prunable
from tidegate.source.iceberg.manifests.rounded import rounded_fields, with_rounded
from tidegate.source.iceberg.manifests.tally import FILES_BY_METRICS, FILES_BY_PARTITION
from tidegate.source.iceberg.manifests.wrapped import WrappedValues

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec

    from tidegate.source.iceberg.manifests.entries import Entry


_OR_EQUAL: Mapping[type[BooleanExpression], Callable[..., BooleanExpression]] = {
    GreaterThan: GreaterThanOrEqual,
    LessThan: LessThanOrEqual,
}


class Pruning:
    """The files of one table that a filter allows to skip."""

    def __init__(
        self, schema: Schema, specs: Mapping[int, PartitionSpec], text: str | None
    ) -> None:
        """Prepare the filter; one that cannot be translated for metadata prunes nothing."""
        # pyiceberg assumes that a required column has no NULL, which is wrong below a NULL struct,
        # and in files from before it was required.
        self._schema = Schema(*map(_optional, schema.fields))
        self._specs = specs
        self._filter = prunable(self._schema, text)
        self.is_active = not isinstance(self._filter, AlwaysTrue)
        """Whether anything can be ruled out."""
        by_metrics = _without_nested_nulls(schema, self._filter)
        self.metric_ids = frozenset(_field_ids(schema, by_metrics))
        """The columns whose metrics the filter is compared with."""
        self._types = {field_id: schema.find_type(field_id) for field_id in self.metric_ids}
        self._metrics = (
            _InclusiveMetricsEvaluator(self._schema, by_metrics) if self.is_active else None
        )
        self._manifests: dict[int, Callable[[ManifestFile], bool]] = {}
        self._partitions: dict[int, Callable[[Any], bool]] = {}
        self._wrapped = {
            spec_id: WrappedValues(self._schema, spec) for spec_id, spec in specs.items()
        }
        self._kept_partitions: dict[Hashable, bool] = {}

    def keeps_manifest(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may have a passing row, by its partition summaries."""
        spec_id = manifest.partition_spec_id
        if not self.is_active or not self._is_known(spec_id):
            return True
        if self._wrapped[spec_id].within(manifest.partitions):
            return True
        if spec_id not in self._manifests:
            self._manifests[spec_id] = manifest_evaluator(
                self._specs[spec_id], self._schema, self._projected(spec_id)
            )
        try:
            return self._manifests[spec_id](manifest)
        except UNREADABLE:
            return True

    def keeps_partition(self, entry: Entry) -> bool:
        """Return whether a file may have a passing row, by its partition."""
        if not self.is_active or not self._is_known(entry.spec_id):
            return True
        key = partition_key(entry.spec_id, entry.partition)
        if key not in self._kept_partitions:
            self._kept_partitions[key] = self._may_hold(entry.spec_id, entry.partition)
        return self._kept_partitions[key]

    def keep(self, entries: Sequence[Entry], tally: Counter[str]) -> Sequence[Entry]:
        """Leave out files that cannot have a passing row, by their partition or column metrics.

        Args:
            entries: data files.
            tally: counts the files that were left out, by cause (ICE-5.18).
        """
        if self._metrics is None:
            return entries
        within = [entry for entry in entries if self.keeps_partition(entry)]
        kept = [entry for entry in within if self._may_pass(self._metrics, entry)]
        tally[FILES_BY_PARTITION] += len(entries) - len(within)
        tally[FILES_BY_METRICS] += len(within) - len(kept)
        return kept

    def _may_pass(self, evaluator: _InclusiveMetricsEvaluator, entry: Entry) -> bool:
        metrics = entry.metrics
        if metrics is None:
            return True
        written = metrics.types
        others = [
            field_id for field_id, kind in self._types.items() if written.get(field_id) != kind
        ]
        if others:
            # It has another type, and cannot be read as this one.
            metrics = metrics.without_bounds(others)
        try:
            return evaluator.eval(cast("DataFile", metrics))
        except UNREADABLE:
            return True

    def _is_known(self, spec_id: int) -> bool:
        fields = self._specs[spec_id].fields
        return bool(fields) and not any(
            isinstance(part.transform, UnknownTransform) for part in fields
        )

    def _may_hold(self, spec_id: int, partition: Sequence[Any]) -> bool:
        if self._wrapped[spec_id].among(partition):
            return True
        try:
            return self._partition_evaluator(spec_id)(Record(*partition))
        except UNREADABLE:
            return True

    def _partition_evaluator(self, spec_id: int) -> Callable[[Any], bool]:
        if spec_id not in self._partitions:
            partition_type = self._specs[spec_id].partition_type(self._schema)
            self._partitions[spec_id] = expression_evaluator(
                Schema(*partition_type.fields), self._projected(spec_id), case_sensitive=True
            )
        return self._partitions[spec_id]

    def _projected(self, spec_id: int) -> BooleanExpression:
        """Translate the filter for the partition values of a spec."""
        spec = self._specs[spec_id]
        project = inclusive_projection(self._schema, spec)
        exact = _replaced(self._filter, lambda leaf: _projected(project, leaf))
        fields = rounded_fields(self._schema, spec)
        return _replaced(exact, lambda leaf: with_rounded(leaf, fields))


def _projected(
    project: Callable[[BooleanExpression], BooleanExpression], leaf: BooleanExpression
) -> BooleanExpression:
    for asked in (leaf, _or_equal(leaf)):
        try:
            return project(asked)
        except (OverflowError, ValueError):
            # pyiceberg needs the year of the next day, which the last day of the calendar does not
            # have.
            continue
    return AlwaysTrue()


def _or_equal(leaf: Any) -> BooleanExpression:
    wider = _OR_EQUAL.get(type(leaf))
    return leaf if wider is None else wider(leaf.term, leaf.literal)


def _replaced(
    expression: BooleanExpression, replace: Callable[[BooleanExpression], BooleanExpression]
) -> BooleanExpression:
    """Replace each predicate."""
    if isinstance(expression, And | Or):
        kind = And if isinstance(expression, And) else Or
        return kind(_replaced(expression.left, replace), _replaced(expression.right, replace))
    return replace(expression)


def _optional(field: NestedField) -> NestedField:
    kind: IcebergType = field.field_type
    if isinstance(kind, StructType):
        kind = StructType(*map(_optional, kind.fields))
    return field.model_copy(update={"required": False, "field_type": kind})


def _without_nested_nulls(schema: Schema, expression: BooleanExpression) -> BooleanExpression:
    """Do not use NULL counts below a struct: those of ORC do not count NULL structs."""
    top = {field.name for field in schema.fields}

    def weaker(leaf: BooleanExpression) -> BooleanExpression:
        is_nested = isinstance(leaf, IsNull) and cast("Reference", leaf.term).name not in top
        return AlwaysTrue() if is_nested else leaf

    return _replaced(expression, weaker)


def _field_ids(schema: Schema, expression: BooleanExpression) -> Iterator[int]:
    if isinstance(expression, And | Or):
        yield from _field_ids(schema, expression.left)
        yield from _field_ids(schema, expression.right)
    elif isinstance(expression, UnboundPredicate) and isinstance(expression.term, Reference):
        yield schema.find_field(expression.term.name).field_id
