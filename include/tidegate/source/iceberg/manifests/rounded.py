"""Match partition values of times that may have been rounded towards 1970 instead of down.

Iceberg's library did so up to version 0.10: it put a time before 1970 into the partition after its
own, unless the time was the beginning of its partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    In,
    LessThan,
    LessThanOrEqual,
    Reference,
    UnboundPredicate,
)
from pyiceberg.transforms import DayTransform, TimeTransform
from pyiceberg.types import DateType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema


def rounded_fields(schema: Schema, spec: PartitionSpec) -> frozenset[str]:
    """Return the names of partition fields whose values may have been rounded towards 1970."""
    return frozenset(part.name for part in spec.fields if _is_rounded(schema, part))


def with_rounded(leaf: BooleanExpression, fields: Collection[str]) -> BooleanExpression:
    """Return a predicate that is also true of a rounded partition value.

    Args:
        leaf: a predicate on partition values, projected from one on their column.
        fields: the `rounded_fields`.
    """
    if not isinstance(leaf, UnboundPredicate) or cast("Reference", leaf.term).name not in fields:
        return leaf
    # pyiceberg's types know nothing of literals, nor of positional arguments.
    asked: Any = leaf
    kind: Callable[..., BooleanExpression] = In if isinstance(leaf, EqualTo) else type(leaf)
    if isinstance(leaf, EqualTo):
        return kind(leaf.term, _both([asked.literal.value]))
    if isinstance(leaf, In):
        return kind(leaf.term, _both([each.value for each in asked.literals]))
    if isinstance(leaf, LessThan | LessThanOrEqual):
        return kind(leaf.term, max(_both([asked.literal.value])))
    # Rounded values are larger, so that a lower bound holds for them, too.
    return leaf


def _is_rounded(schema: Schema, part: PartitionField) -> bool:
    if not isinstance(part.transform, TimeTransform) or part.source_id not in schema.field_ids:
        return False
    is_day_of_date = isinstance(schema.find_type(part.source_id), DateType) and isinstance(
        part.transform, DayTransform
    )
    return not is_day_of_date


def _both(values: Collection[int]) -> set[int]:
    return {*values, *(value + 1 for value in values if value < 0)}
