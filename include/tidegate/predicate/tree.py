"""Take conditions apart: trees of an expression's nodes, and the constants in them.

A tree is what polars writes of an expression as JSON, parsed.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCHANGED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
"""Operators that say the same with their sides exchanged, where they do not themselves."""
COMPARISONS = frozenset({"Eq", "NotEq", "EqValidity", "NotEqValidity", *EXCHANGED})
"""Operators of comparisons."""
_TEXTS = ("Literal", "Column")
"""Nodes that hold the user's texts and not the expression's structure."""


def tree_of(expression: pl.Expr) -> Any:
    """Return the tree of an expression."""
    return json.loads(expression.meta.serialize(format="json"))


def expression_of(tree: Any) -> pl.Expr:
    """Return the expression of a tree."""
    return pl.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json")


def nodes(tree: Any) -> Iterator[str]:
    """Name what a tree is made of."""
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
    """Return the value that a literal stands for, or a list of literals, also if it is cast.

    Returns:
        One value, or all of a list; None for anything else.
    """
    if not _is_constant(tree):
        return None
    try:
        found = pl.select(expression_of(tree)).to_series()
    except pl.exceptions.PolarsError:
        # Whoever evaluates the whole expression says what is wrong with it.
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
    """Return what `IN` looks for and the list where it does; None for anything else."""
    found = tree.get("Function") if isinstance(tree, dict) else None
    if found is None or "IsIn" not in set(nodes(found["function"])):
        return None
    looked_for, values = found["input"]
    return looked_for, values


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
