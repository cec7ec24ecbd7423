"""Inspect conditions: trees of an expression's nodes, and the constants in them.

A tree is the parsed JSON of a polars expression.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCHANGED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
"""Operators for exchanged sides, if they differ."""
COMPARISONS = frozenset({"Eq", "NotEq", "EqValidity", "NotEqValidity", *EXCHANGED})
"""Operators of comparisons."""
_TEXTS = ("Literal", "Column")
"""Nodes with the user's texts, which are not part of the expression's structure."""


def tree_of(expression: pl.Expr) -> Any:
    """Return the tree of an expression."""
    return json.loads(expression.meta.serialize(format="json"))


def expression_of(tree: Any) -> pl.Expr:
    """Return the expression of a tree."""
    return pl.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json")


def nodes(tree: Any) -> Iterator[str]:
    """Return the kinds of nodes in a tree."""
    if isinstance(tree, dict):
        for key, child in tree.items():
            if key not in _TEXTS:
                yield key
                yield from nodes(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from nodes(child)
    elif isinstance(tree, str):
        yield tree


def constants(tree: Any) -> pl.Series | None:
    """Return the value of a literal or of a list of literals, even if it is cast.

    Returns:
        One value, or all of a list; None for anything else.
    """
    if not _is_constant(tree):
        return None
    try:
        found = pl.select(expression_of(tree)).to_series()
    except pl.exceptions.PolarsError:
        # Evaluating the whole expression reports the error.
        return None
    return found.explode() if found.dtype == pl.List else found


def parsed_text(constant: Any) -> str | None:
    """Return the text that the time of a constant is parsed from; None if it is not."""
    while "Cast" in constant:
        constant = constant["Cast"]["expr"]
    if "Function" not in constant or "Strptime" not in set(nodes(constant["Function"])):
        return None
    found = constants(constant["Function"]["input"][0])
    return None if found is None else found.item()


def listed(tree: Any) -> tuple[Any, Any] | None:
    """Return the value and the list of an `IN`; None for anything else."""
    found = tree.get("Function") if isinstance(tree, dict) else None
    if found is None or "IsIn" not in set(nodes(found["function"])):
        return None
    looked_for, values = found["input"]
    return looked_for, values


def is_plain(tree: Any) -> bool:
    """Return whether a condition only compares unchanged columns with constants."""
    if "BinaryExpr" in tree:
        return _is_plain_binary(**tree["BinaryExpr"])
    if "Function" in tree:
        return _is_plain_function(tree)
    if "Cast" in tree:
        # polars defines the negation.
        cast = tree["Cast"]
        is_condition = cast["dtype"] == {"Literal": "Boolean"} and "Column" not in cast["expr"]
        return is_condition and is_plain(cast["expr"])
    return "Column" in tree


def _is_plain_binary(left: Any, op: str, right: Any) -> bool:
    if op in ("And", "Or"):
        return is_plain(left) and is_plain(right)
    if constants(left) is not None:
        left, right = right, left
    return op in COMPARISONS and "Column" in left and constants(right) is not None


def _is_plain_function(tree: Any) -> bool:
    looked_for, *rest = tree["Function"]["input"]
    if listed(tree) is not None:
        return "Column" in looked_for and constants(rest[0]) is not None
    kind = tree["Function"]["function"]
    if kind == {"Boolean": "Not"}:
        return is_plain(looked_for)
    return kind in ({"Boolean": "IsNull"}, {"Boolean": "IsNotNull"}) and "Column" in looked_for


def _is_constant(tree: Any) -> bool:
    if not isinstance(tree, dict):
        return False
    if "Literal" in tree:
        return True
    if "Cast" in tree:
        return _is_constant(tree["Cast"]["expr"])
    # Texts that are parsed by a format, as `strptime` does.
    found = tree.get("Function")
    return (
        found is not None
        and "StringExpr" in found["function"]
        and all(_is_constant(each) for each in found["input"])
    )
