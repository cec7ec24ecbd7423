"""Rule out equality deletes by column metrics, as far as ICE-4.9 allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidegate.source.iceberg.manifests.bounds import decode_bounds, order_of
from tidegate.source.iceberg.manifests.overlaps import Overlaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tidegate.source.iceberg.deletes.rules import KeyField
    from tidegate.source.iceberg.manifests.metrics import Metrics
    from tidegate.source.iceberg.manifests.overlaps import Range


class KeyMetrics(NamedTuple):
    """The metrics of one column; missing ones rule nothing out."""

    has_no_null: bool = False
    has_only_null: bool = False
    bounds: Range | None = None
    order: str = ""
    """The group of types that the bounds compare with."""


def key_metrics(metrics: Metrics | None, field_id: int, field: KeyField) -> KeyMetrics:
    """Read the metrics of a key column of a file."""
    if metrics is None:
        return KeyMetrics(has_no_null=field.required)
    values, nulls, _, lower, upper = metrics.of(field_id)
    # A column that is required now may have been optional in a schema that was removed.
    none_counted = nulls == 0 and field.nulls_counted
    kind = metrics.types.get(field_id)
    return KeyMetrics(
        has_no_null=field.required if nulls is None else none_counted,
        has_only_null=nulls is not None and nulls == values,
        bounds=None if kind is None else decode_bounds(kind, lower, upper),
        order="" if kind is None else order_of(kind),
    )


class KeyBounds:
    """One key column of many delete files, which are numbered in the given order."""

    def __init__(self, found: Sequence[KeyMetrics]) -> None:
        self._overlaps = {
            order: Overlaps([each.bounds if each.order == order else None for each in found])
            for order in {each.order for each in found if each.bounds}
        }
        self._without_null = np.array([each.has_no_null for each in found], np.bool_)
        self._only_null = np.array([each.has_only_null for each in found], np.bool_)
        self._any_only_null = bool(self._only_null.any())

    def ruled_out(self, rows: KeyMetrics, first: int) -> NDArray[np.bool_] | None:
        """Mark the delete files from number `first` on that cannot hold a key of a data file.

        Returns:
            bool[len - first]; None if nothing is ruled out.
        """
        marks: list[NDArray[np.bool_]] = []
        if rows.has_only_null:
            marks.append(self._without_null[first:])
        if rows.has_no_null and self._any_only_null:
            marks.append(self._only_null[first:])
        overlaps = self._overlaps.get(rows.order)
        apart = overlaps.apart_from(*rows.bounds, first) if overlaps and rows.bounds else None
        if apart is not None:
            marks.append(apart if rows.has_no_null else apart & self._without_null[first:])
        return np.logical_or.reduce(marks) if marks else None
