"""Recognize conditions that are computed row by row.

All others are refused, because their result would depend on how rows are cut into batches.
Functions that are not listed here are refused, so that those of later polars versions are not
accepted unseen.
"""

from __future__ import annotations

from typing import Any

from tidegate.predicate.tree import constants

_SIDES = {
    "BinaryExpr": ("left", "right"),
    "Cast": ("expr",),
    "Ternary": ("predicate", "truthy", "falsy"),
    # Functions of the elements of one row's list.
    "Eval": ("expr",),
}
"""Node → its parts that are nodes themselves."""
_FAMILIES = {
    "Bitwise": {"CountOnes"},
    "Boolean": {"IsBetween", "IsFinite", "IsInfinite", "IsNan", "IsNotNull", "IsNull", "Not"},
    "ListExpr": {"Contains", "Get", "Join", "Length", "Max", "Mean", "Min", "Sum"},
    "Pow": {"Cbrt", "Generic", "Sqrt"},
    "Sql": {"Binary", "IsIn", "Round", "ToFloat"},
    "StringExpr": {
        "ConcatHorizontal",
        "Contains",
        "EndsWith",
        "Find",
        "LenBytes",
        "LenChars",
        "Lowercase",
        "Normalize",
        "PadEnd",
        "PadStart",
        "Replace",
        "Reverse",
        "Slice",
        "Split",
        "StartsWith",
        "StripChars",
        "StripCharsEnd",
        "StripCharsStart",
        "Strptime",
        "Titlecase",
        "Uppercase",
    },
    "StructExpr": {"FieldByName"},
    "TemporalExpr": {
        "BaseUtcOffset",
        "CastTimeUnit",
        "Century",
        "ConvertTimeZone",
        "Date",
        "Day",
        "DSTOffset",
        "Hour",
        "IsoYear",
        "Microsecond",
        "Millennium",
        "Millisecond",
        "Minute",
        "Month",
        "Nanosecond",
        "OffsetBy",
        "OrdinalDay",
        "Quarter",
        "ReplaceTimeZone",
        "Second",
        "Time",
        "TimeStamp",
        "ToString",
        "TotalSeconds",
        "Truncate",
        "Week",
        "WeekDay",
        "Year",
    },
    "Trigonometry": {
        "ArcCos",
        "ArcSin",
        "ArcTan",
        "Cos",
        "Cot",
        "Degrees",
        "Radians",
        "Sin",
        "Tan",
    },
}
_FUNCTIONS = {
    "Abs",
    "Atan2",
    "Ceil",
    "Clip",
    "Coalesce",
    "Exp",
    "FillNull",
    "Floor",
    "Log",
    "Log1p",
    "MaxHorizontal",
    "MinHorizontal",
    "Sign",
    "Truncate",
}


def is_row_wise(tree: Any) -> bool:
    """Return whether the result for a row is known to depend on that row alone."""
    if not isinstance(tree, dict):
        return False
    if "Column" in tree or constants(tree) is not None:
        return True
    ((name, node),) = tree.items()
    if name == "Function":
        return _is_known(node["function"]) and all(is_row_wise(each) for each in node["input"])
    return name in _SIDES and all(is_row_wise(node[side]) for side in _SIDES[name])


def guesses_formats(tree: Any) -> bool:
    """Return whether the first text of a column decides how all are read as times."""
    if isinstance(tree, list):
        return any(guesses_formats(each) for each in tree)
    if not isinstance(tree, dict) or constants(tree) is not None:
        return False
    if "Strptime" in tree:
        return any(part.get("format", "") is None for part in tree["Strptime"])
    return any(guesses_formats(each) for each in tree.values())


def _is_known(function: Any) -> bool:
    if isinstance(function, str):
        return function in _FUNCTIONS
    ((name, options),) = function.items()
    if name not in _FAMILIES:
        return name in _FUNCTIONS
    member = options if isinstance(options, str) else next(iter(options))
    return member in _FAMILIES[name]
