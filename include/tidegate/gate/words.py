"""Describe what a check expected and found: a share, a value, a number of rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.gate.suite import Expectation

_SHOWN_VALUES = 8
_MOST_DECIMALS = 6
_ARGUMENTS = (
    "value_set",
    "value",
    "regex",
    "regex_list",
    "like_pattern",
    "like_pattern_list",
    "strftime_format",
    "type_",
    "type_list",
    "sum_total",
    "threshold",
    "quantile_ranges",
    "column_set",
)


def expected(expectation: Expectation, outcome: Mapping[str, Any]) -> str:
    """Return what the check expects: `≥ 80.0 % not null`, `row count at least 500`.

    Args:
        expectation: the check.
        outcome: the library's result, JSON-ready, which tells whether rows were judged one by one.
    """
    bound = _bound(expectation) if _is_share(outcome["result"]) else ""
    return _joined(bound, _measure(expectation), _claim(expectation))


def observed(expectation: Expectation, outcome: Mapping[str, Any]) -> str:
    """Return what the check found: `49.2 % not null (458 of 930)`, `row count 930`.

    Args:
        expectation: the check.
        outcome: the library's result in summary form, JSON-ready.
    """
    result = outcome["result"]
    if _is_share(result):
        return _observed_share(expectation, result)
    if unexpected := result.get("partial_unexpected_list"):
        return f"unexpected {_text(unexpected)}"
    if "observed_value" in result:
        value = result["observed_value"]
        return _joined(_measure(expectation), "none" if value is None else _text(value))
    return "as expected" if outcome["success"] else "not as expected"


def _is_share(result: Mapping[str, Any]) -> bool:
    """Whether rows are judged one by one, so that a share of them passes."""
    return "element_count" in result and "unexpected_count" in result


def _observed_share(expectation: Expectation, result: Mapping[str, Any]) -> str:
    # The library ignores missing values, except in the checks that are about them.
    judged = result["element_count"] - (result.get("missing_count") or 0)
    if judged == 0:
        return "only missing values" if result["element_count"] else "no rows"
    passed = judged - result["unexpected_count"]
    share = _share_text(passed / judged, _mostly(expectation))
    claim = _joined(_measure(expectation), _claim(expectation))
    return f"{share} {claim} ({passed:,} of {judged:,})"


def _share_text(share: float, bound: float) -> str:
    """Return a share with enough decimals to distinguish it from its bound."""
    for decimals in range(1, _MOST_DECIMALS):
        text = f"{share * 100:.{decimals}f} %"
        if share == bound or text != f"{bound * 100:.{decimals}f} %":
            return text
    return f"{share * 100:.{_MOST_DECIMALS}f} %"


def _bound(expectation: Expectation) -> str:
    mostly = _mostly(expectation)
    return "100 %" if mostly == 1 else f"≥ {_share_text(mostly, 1)}"


def _mostly(expectation: Expectation) -> float:
    return float(expectation.kwargs.get("mostly", 1))


def _measure(expectation: Expectation) -> str:
    """Return what is judged: `row count`, `max`; empty for the values themselves."""
    head = expectation.type.removeprefix("expect_").partition("_to_")[0]
    plain = head.removeprefix("column_").removeprefix("table_").removesuffix("_expectation")
    return "" if plain in ("values", "column") else plain.replace("_", " ")


def _claim(expectation: Expectation) -> str:
    """Return the condition: `not null`, `between 0 and 100`, `in set [x, y]`."""
    tail = expectation.type.partition("_to_")[2]
    if not tail:  # a query for rows that must not exist
        return "0"
    plain = tail.removeprefix("be_").replace("not_be_", "not_").replace("_", " ")
    kwargs = expectation.kwargs
    if plain == "between" and (bounds := _range(kwargs)):
        return bounds
    given = [_text(kwargs[key]) for key in _ARGUMENTS if key in kwargs]
    return _joined("" if plain == "equal" and given else plain, *given)


def _range(kwargs: Mapping[str, Any]) -> str:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    strict_low, strict_high = kwargs.get("strict_min"), kwargs.get("strict_max")
    if None not in (low, high) and not strict_low and not strict_high:
        return f"between {_text(low)} and {_text(high)}"
    bounds = [f"{'above' if strict_low else 'at least'} {_text(low)}"] if low is not None else []
    bounds += [f"{'below' if strict_high else 'at most'} {_text(high)}"] if high is not None else []
    return " and ".join(bounds)


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = [_text(item) for item in value[:_SHOWN_VALUES]]
        more = len(value) - _SHOWN_VALUES
        return f"[{', '.join([*shown, f'and {more} more'] if more > 0 else shown)}]"
    return str(value)
