"""Find statistics of columns whose type has none, by what the library does with such values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidegate.gate.suite import Expectation

_NAMES = {
    "mean": r"expect_column_mean_to_be_between",
    "sum": r"expect_column_sum_to_be_between",
    "standard deviation": r"expect_column_stdev_to_be_between",
    "median": r"expect_column_median_to_be_between",
    "quantiles": r"expect_column_quantile_values_to_be_between",
    "z-scores": r"expect_column_value_z_scores_to_be_less_than",
    "bins of numbers": r"expect_column_kl_divergence_to_be_less_than",
}
_OF_TIMES = ("mean", "median")
_BY_CHANCE_OF_LISTS = ("sum", "quantiles", "bins of numbers")
"""pandas adds and sorts the arrays in a column, which may even end well."""


def missing_statistics(
    expectation: Expectation,
    built: Any,
    types: Mapping[str, pa.DataType | None],
    *,
    needs_sql: bool,
) -> Iterator[str]:
    """Find a statistic that the values of a check's column do not have.

    Args:
        expectation: the check.
        built: the library's object for it, which has read bounds as numbers and times.
        types: of the table's columns, None where it is not known.
        needs_sql: whether the suite only runs on Spark, which reads some texts as numbers.

    Yields:
        What is wrong.
    """
    column = str(expectation.kwargs.get("column"))
    kind = types.get(column)
    name = next((name for name, of in _NAMES.items() if re.fullmatch(of, expectation.type)), None)
    if kind is None or name is None or (needs_sql and name != "mean"):
        return
    if name == "bins of numbers" and not _has_number_bins(expectation):
        return
    if _lacks(kind, name, is_bounded=_has_number_bounds(built)):
        yield f"column '{column}' is of type {kind}, of which there is no {name}; use numbers"


def has_numbers(kind: pa.DataType) -> bool:
    """Return whether the values of a type are numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether the values of a type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_computed_with(kind: pa.DataType) -> bool:
    """Return whether the library computes with a type's values; a column of NULLs may be any."""
    return bool(has_numbers(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _has_number_bounds(built: Any) -> bool:
    """Return whether a check compares with a number."""
    bounds = (getattr(built, key, None) for key in ("min_value", "max_value"))
    return any(isinstance(bound, float | int) for bound in bounds)


def _lacks(kind: pa.DataType, name: str, *, is_bounded: bool) -> bool:
    types = pa.types
    if _is_computed_with(kind):
        return False
    if types.is_timestamp(kind):
        return is_bounded if name in _OF_TIMES else name != "z-scores"
    if types.is_duration(kind):
        # It computes the others as well, and cannot write down a duration.
        return name != "z-scores"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return name not in _BY_CHANCE_OF_LISTS
    # The sum of texts is one text, which only no bound can be compared with.
    is_joined = (is_text(kind) or _is_binary(kind)) and name == "sum"
    return is_bounded or not is_joined


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    is_binary = types.is_binary(kind) or types.is_large_binary(kind)
    return bool(is_binary or types.is_fixed_size_binary(kind))


def _has_number_bins(expectation: Expectation) -> bool:
    said = expectation.kwargs.get("partition_object")
    bins = said.get("bins") if isinstance(said, dict) else None
    return isinstance(bins, list) and all(isinstance(edge, float | int) for edge in bins)
