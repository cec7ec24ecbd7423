"""Column metrics of one file, for the columns that are needed; tables have many files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.source.iceberg.manifests.written_types import UNTOLD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyiceberg.types import PrimitiveType


class ColumnMetrics(NamedTuple):
    """The metrics of one column of a file; None if the manifest does not have them."""

    values: int | None = None
    """The number of values, including NULL and NaN."""
    nulls: int | None = None
    nans: int | None = None
    lower: bytes | None = None
    upper: bytes | None = None


class Metrics(NamedTuple):
    """Metrics by column, as a few tuples: five mappings would take four times the memory."""

    record_count: int
    places: Mapping[int, int]
    """Field id → index in `columns`; shared by all files of a manifest."""
    columns: tuple[ColumnMetrics, ...]
    types: Mapping[int, PrimitiveType] = UNTOLD
    """Field id → type of the bounds; shared by all files of a manifest."""

    def of(self, field_id: int) -> ColumnMetrics:
        """Return the metrics of a column, which are empty if they were not requested."""
        place = self.places.get(field_id)
        return _UNKNOWN if place is None else self.columns[place]

    def without_bounds(self, field_ids: Collection[int]) -> Metrics:
        """Leave out the bounds of some columns."""
        columns = list(self.columns)
        for place in (self.places[field_id] for field_id in field_ids):
            columns[place] = columns[place]._replace(lower=None, upper=None)
        return self._replace(columns=tuple(columns))

    # Named as pyiceberg names what it compares filters with.

    @property
    def value_counts(self) -> dict[int, int]:
        """Field id → number of values."""
        return self._known(0)

    @property
    def null_value_counts(self) -> dict[int, int]:
        """Field id → number of NULLs."""
        return self._known(1)

    @property
    def nan_value_counts(self) -> dict[int, int]:
        """Field id → number of NaNs."""
        return self._known(2)

    @property
    def lower_bounds(self) -> dict[int, bytes]:
        """Field id → lower bound, as Iceberg serialises it."""
        return self._known(3)

    @property
    def upper_bounds(self) -> dict[int, bytes]:
        """Field id → upper bound."""
        return self._known(4)

    def _known(self, part: int) -> dict[int, Any]:
        found = ((field_id, self.columns[place][part]) for field_id, place in self.places.items())
        return {field_id: value for field_id, value in found if value is not None}


_UNKNOWN = ColumnMetrics()
