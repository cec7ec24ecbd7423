"""Metrics tell what was written of a column, and nothing of one that nobody asked for."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.source.iceberg.manifests.metrics import ColumnMetrics, Metrics

COUNTS = st.none() | st.integers(0, 3)
BOUNDS = st.none() | st.binary(max_size=2)
SAID = st.dictionaries(
    st.integers(1, 5), st.builds(ColumnMetrics, COUNTS, COUNTS, COUNTS, BOUNDS, BOUNDS), max_size=4
)


def _metrics(said: dict[int, ColumnMetrics]) -> Metrics:
    places = {field_id: place for place, field_id in enumerate(said)}
    return Metrics(10, places, tuple(said.values()))


@given(said=SAID, asked=st.integers(1, 6))
def test_column_has_what_was_said_of_it(said: dict[int, ColumnMetrics], asked: int) -> None:
    assert _metrics(said).of(asked) == said.get(asked, ColumnMetrics())


@given(said=SAID)
def test_mappings_leave_out_what_is_not_known(said: dict[int, ColumnMetrics]) -> None:
    metrics = _metrics(said)

    found: list[dict[int, Any]] = [
        metrics.value_counts,
        metrics.null_value_counts,
        metrics.nan_value_counts,
        metrics.lower_bounds,
        metrics.upper_bounds,
    ]

    names = ("values", "nulls", "nans", "lower", "upper")
    assert found == [
        {key: value for key, it in said.items() if (value := getattr(it, name)) is not None}
        for name in names
    ]


@given(said=SAID, data=st.data())
def test_bounds_that_are_left_out_leave_counts_and_other_columns(
    said: dict[int, ColumnMetrics], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(said)))) if said else set()

    found = _metrics(said).without_bounds(gone)

    for field_id, before in said.items():
        bounds = (None, None) if field_id in gone else (before.lower, before.upper)
        assert found.of(field_id) == ColumnMetrics(*before[:3], *bounds)
