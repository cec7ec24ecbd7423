"""Compare dates and times exactly, with literals and with each other.

polars compares moments with moments only, no date or time with a text, and two units in the coarser
one, so that the finer side is cut. Here an ISO text is what it says, a time without a zone is one
of UTC where it meets a moment, and a comparison is that of the exact times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate.predicate.time_texts import nanoseconds_cut_from, nanoseconds_of
from tidegate.predicate.tree import (
    COMPARISONS,
    EXCHANGED,
    constants,
    expression_of,
    listed,
    parsed_text,
    tree_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIFFERENT = {
    "Eq": ("Eq", "And", "NotEq"),
    "NotEq": ("Eq", "Or", "NotEq"),
    "EqValidity": ("EqValidity", "And", "NotEqValidity"),
    "NotEqValidity": ("EqValidity", "Or", "NotEqValidity"),
}
"""What is true of no value, or of all of them, and NULL where the operator is."""
_ABOVE = {"Lt": "LtEq", "GtEq": "Gt"}
"""Operators for the last value of a column that is below the literal, where others stand for it."""
_BELOW = {"LtEq": "Lt", "Gt": "GtEq"}
"""The same for the first value that is above it."""
_NANOSECONDS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY = 86_400_000_000_000
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_COUNTS = pl.List(pl.Int64)
_FAR = 1 << 61
"""Further from 1970, in the coarser of two units, than any count in the finer one."""


_Kind = pl.Date | pl.Datetime
_Counted = pl.Date | pl.Datetime | pl.Duration


def with_typed_literals(expression: pl.Expr, columns: pl.DataFrame) -> pl.Expr:
    """Return the condition that compares dates and times with dates and times.

    Args:
        expression: a condition on the columns.
        columns: without rows.

    Raises:
        pl.exceptions.PolarsError: a side of a comparison cannot be computed.
    """
    tree = tree_of(expression)
    typed = _typed(tree, columns)
    return expression if typed == tree else expression_of(typed)


def _typed(tree: Any, columns: pl.DataFrame) -> Any:
    if isinstance(tree, list):
        return [_typed(child, columns) for child in tree]
    if not isinstance(tree, dict) or "Literal" in tree:
        return tree
    made = {key: _typed(child, columns) for key, child in tree.items()}
    comparison, found = made.get("BinaryExpr"), listed(made)
    if comparison is not None and comparison["op"] in COMPARISONS:
        return _compared(comparison, columns)
    if found is not None:
        made["Function"]["input"] = [found[0], _list(*found, columns)]
    return made


def _compared(comparison: Mapping[str, Any], columns: pl.DataFrame) -> Any:
    """Return a comparison, with a literal in the other side's unit if it is one."""
    left, op, right = comparison["left"], comparison["op"], comparison["right"]
    if constants(left) is None and constants(right) is None:
        counted = _counted(left, right, columns)
        return _binary(counted[0], op, counted[1]) if counted else {"BinaryExpr": comparison}
    if constants(left) is not None:
        left, op, right = right, EXCHANGED.get(op, op), left
    found = _times(left, right, columns)
    if found is None:
        return {"BinaryExpr": comparison}
    kind, ((count, is_exact), *_) = found
    if is_exact:
        return _binary(left, op, _literal(count, kind))
    if op in _DIFFERENT:
        one, joined, other = _DIFFERENT[op]
        literal = _literal(max(count, _FIRST), kind)
        return _binary(_binary(left, one, literal), joined, _binary(left, other, literal))
    if count < _FIRST:
        return _binary(left, _BELOW.get(op, op), _literal(_FIRST, kind))
    return _binary(left, _ABOVE.get(op, op), _literal(count, kind))


def _counted(left: Any, right: Any, columns: pl.DataFrame) -> tuple[Any, Any] | None:
    """Turn two times that are counted in different units into numbers of the same order.

    Those are the counts in the coarser unit, doubled, and one more for what lies between two.
    """
    sides = expression_of(left), expression_of(right)
    kinds = [columns.select(side).to_series().dtype for side in sides]
    units = [_unit(kind) for kind in kinds if isinstance(kind, _Counted)]
    if len(set(units)) < len(sides) or not _are_alike(*kinds):
        return None
    coarser = max(units)
    first, second = (
        tree_of(_doubled(side.cast(pl.Int64), coarser // unit))
        for side, unit in zip(sides, units, strict=True)
    )
    return first, second


def _doubled(counts: pl.Expr, of_the_coarser: int) -> pl.Expr:
    if of_the_coarser == 1:
        return counts.clip(-_FAR, _FAR) * 2
    whole = counts // of_the_coarser
    return whole * 2 + (whole * of_the_coarser != counts).cast(pl.Int64)


def _are_alike(one: pl.DataType, other: pl.DataType) -> bool:
    """Return whether both are durations, wall clocks or moments."""
    if isinstance(one, pl.Duration) or isinstance(other, pl.Duration):
        return type(one) is type(other)
    return (_zone(one) is None) == (_zone(other) is None)


def _list(looked_for: Any, values: Any, columns: pl.DataFrame) -> Any:
    """Return a list of literals in the unit of what is looked for; none between two is equal."""
    found = _times(looked_for, values, columns)
    if found is None:
        return values
    kind, counts = found
    equal = pl.Series([[count for count, is_exact in counts if is_exact]], dtype=_COUNTS)
    return tree_of(pl.lit(equal.cast(pl.List(kind))))


def _times(
    tree: Any, literal: Any, columns: pl.DataFrame
) -> tuple[_Kind, list[tuple[int, bool]]] | None:
    """Count literals in the unit of the dates or times that they are compared with.

    Returns:
        The type of those, and for each literal the last value that is not above it, and whether it
        is equal; None for what is no such comparison.
    """
    values = constants(literal)
    if values is None or values.null_count() or constants(tree) is not None:
        return None
    kind = columns.select(expression_of(tree)).to_series().dtype
    if not isinstance(kind, pl.Date | pl.Datetime):
        return None
    counts = _nanoseconds(values, with_offset=_zone(kind) is not None)
    if counts is None:
        return None
    cut = _cut(literal, values.dtype)
    return kind, [_divided(each + cut, _unit(kind)) for each in counts]


def _nanoseconds(values: pl.Series, *, with_offset: bool) -> list[int] | None:
    """Count from 1970 to each literal; None if one does not compare with dates or times."""
    kind = values.dtype
    if isinstance(kind, pl.String):
        counts = [nanoseconds_of(text, with_offset=with_offset) for text in values.to_list()]
        known = [each for each in counts if each is not None]
        return known if len(known) == len(counts) else None
    # A wall clock does not compare with a moment.
    if not isinstance(kind, pl.Date | pl.Datetime) or (_zone(kind) and not with_offset):
        return None
    return [count * _unit(kind) for count in values.to_physical().to_list()]


def _cut(literal: Any, kind: pl.DataType) -> int:
    """Count the nanoseconds that a literal in microseconds has in its text only."""
    text = parsed_text(literal)
    is_cut = isinstance(kind, pl.Datetime) and kind.time_unit == "us"
    return nanoseconds_cut_from(text) if is_cut and text is not None else 0


def _divided(nanoseconds: int, unit: int) -> tuple[int, bool]:
    count, rest = divmod(nanoseconds, unit)
    return (count, rest == 0) if _FIRST <= count <= _LAST else (min(count, _LAST), False)


def _unit(kind: _Counted) -> int:
    """Return how many nanoseconds a type counts as one."""
    return _DAY if isinstance(kind, pl.Date) else _NANOSECONDS[kind.time_unit]


def _zone(kind: pl.DataType) -> str | None:
    return kind.time_zone if isinstance(kind, pl.Datetime) else None


def _literal(count: int, kind: _Kind) -> Any:
    return tree_of(pl.lit(count, dtype=pl.Int64).cast(kind))


def _binary(left: Any, op: str, right: Any) -> Any:
    return {"BinaryExpr": {"left": left, "op": op, "right": right}}
