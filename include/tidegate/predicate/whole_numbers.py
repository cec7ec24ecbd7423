"""Compute with whole numbers so that none is cut to the width of its column.

polars computes in the type of the column and wraps around: 300 * 200 in 16 bits is negative. Here
both sides are widened so far that every result fits, and where none is wide enough for all that may
come, they become decimals, with which polars refuses to compute what does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate.predicate.tree import constants, expression_of, tree_of
from tidegate.predicate.typed_literals import with_typed_literals

if TYPE_CHECKING:
    from collections.abc import Callable

_Range = tuple[int, int]
"""The lowest and the highest value."""


def with_whole_numbers(expression: pl.Expr, columns: pl.DataFrame) -> pl.Expr:
    """Return the condition that computes with whole numbers exactly.

    Args:
        expression: a condition on the columns.
        columns: without rows.

    Raises:
        pl.exceptions.PolarsError: a part of it cannot be computed.
    """
    tree = tree_of(expression)
    exact = _Widening(columns).of(tree)
    return expression if exact == tree else expression_of(exact)


def _largest(of: _Range) -> int:
    return max(abs(of[0]), abs(of[1]))


def _product(one: _Range, other: _Range) -> _Range:
    corners = [left * right for left in one for right in other]
    return min(corners), max(corners)


_RESULTS: dict[str, Callable[[_Range, _Range], _Range]] = {
    "Plus": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "Minus": lambda one, other: (one[0] - other[1], one[1] - other[0]),
    "Multiply": _product,
    "Mul": _product,
    "IntDiv": lambda one, _: (-_largest(one), _largest(one)),
    "Rem": lambda one, _: (-_largest(one), _largest(one)),
}
"""Operator → where its results lie."""
_CHOICES = ("Coalesce", "MaxHorizontal", "MinHorizontal")
"""Functions whose result is one of their inputs."""
_WIDE = {pl.Int64: "Int64", pl.Int128: "Int128"}
_CHECKED = {"Decimal": [38, 0]}
_RANGES: dict[Any, _Range] = {pl.Boolean: (0, 1)} | {
    kind: (0, (1 << bits) - 1)
    for kind, bits in ((pl.UInt8, 8), (pl.UInt16, 16), (pl.UInt32, 32), (pl.UInt64, 64))
}
_RANGES |= {
    kind: (-(1 << bits - 1), (1 << bits - 1) - 1)
    for kind, bits in (
        (pl.Int8, 8),
        (pl.Int16, 16),
        (pl.Int32, 32),
        (pl.Int64, 64),
        (pl.Int128, 128),
    )
}


@dataclass(frozen=True)
class _Widening:
    columns: pl.DataFrame

    def of(self, tree: Any) -> Any:
        return self._ranged(tree)[0]

    def _ranged(self, tree: Any) -> tuple[Any, _Range | None]:
        """Widen a tree; tell where its values lie if they are computed of whole numbers."""
        if isinstance(tree, list):
            return [self.of(child) for child in tree], None
        if not isinstance(tree, dict) or "Literal" in tree or "Column" in tree:
            return tree, None
        if "BinaryExpr" in tree:
            return self._binary(tree)
        if "Function" in tree:
            return self._function(tree["Function"])
        if "Ternary" in tree:
            parts = {key: self._operand(child) for key, child in tree["Ternary"].items()}
            made = {"Ternary": {key: part[0] for key, part in parts.items()}}
            return made, _around(parts["truthy"][1], parts["falsy"][1])
        return {key: self.of(child) for key, child in tree.items()}, None

    def _binary(self, tree: Any) -> tuple[Any, _Range | None]:
        binary = tree["BinaryExpr"]
        if binary["op"] not in _RESULTS:
            return {"BinaryExpr": {key: self.of(child) for key, child in binary.items()}}, None
        (left, right), found = self._computed(binary["op"], [binary["left"], binary["right"]])
        return {"BinaryExpr": {"left": left, "op": binary["op"], "right": right}}, found

    def _function(self, function: Any) -> tuple[Any, _Range | None]:
        kind, inputs = function["function"], function["input"]
        found = None
        if kind == "Abs":
            # The lowest number of a type has no counterpart there.
            (_, made), found = self._computed("Mul", [_literal(-1), *inputs])
            made, found = [made], found and (0, _largest(found))
        elif isinstance(kind, dict) and str(_sql(kind)) in _RESULTS:
            made, found = self._computed(str(_sql(kind)), inputs)
        elif kind in _CHOICES:
            operands = [self._operand(each) for each in inputs]
            made, found = [each[0] for each in operands], _around(*(each[1] for each in operands))
        elif kind == {"Pow": "Generic"}:
            made = [_cast(self.of(each), "Float64") for each in inputs]
        else:
            made = self.of(inputs)
        return {"Function": {"input": made, "function": kind}}, found

    def _computed(self, op: str, sides: list[Any]) -> tuple[list[Any], _Range | None]:
        """Widen two sides so that they and the result fit."""
        operands = [self._operand(side) for side in sides]
        made = [each[0] for each in operands]
        (_, one), (_, other) = operands
        if one is None or other is None:
            return made, None
        found = _RESULTS[op](one, other)
        needed = (*found, *one, *other)
        for kind, name in _WIDE.items():
            low, high = _RANGES[kind]
            if low <= min(needed) and max(needed) <= high:
                return [_cast(each, name) for each in made], found
        return [_cast(each, _CHECKED) for each in made], None

    def _operand(self, tree: Any) -> tuple[Any, _Range | None]:
        made, found = self._ranged(tree)
        return made, found or self._range(made)

    def _range(self, tree: Any) -> _Range | None:
        values = constants(tree)
        if values is not None and values.dtype == pl.Null:
            return 0, 0
        if values is not None and values.dtype in _RANGES and not values.null_count():
            return values.item(), values.item()
        # It may compare a time with a text, of which polars knows no type.
        typed = with_typed_literals(expression_of(tree), self.columns)
        return _RANGES.get(self.columns.select(typed).to_series().dtype)


def _around(*ranges: _Range | None) -> _Range | None:
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    return min(each[0] for each in known), max(each[1] for each in known)


def _sql(kind: dict[str, Any]) -> Any:
    operation = kind.get("Sql")
    return operation.get("Binary") if isinstance(operation, dict) else None


def _literal(number: int) -> Any:
    return tree_of(pl.lit(number))


def _cast(tree: Any, kind: Any) -> Any:
    return {"Cast": {"expr": tree, "dtype": {"Literal": kind}, "options": "Strict"}}
