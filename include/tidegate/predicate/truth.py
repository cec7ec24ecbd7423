"""Read `is true`, `is distinct from` and their like as SQL means them."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from tidegate.predicate.tree import expression_of, tree_of

_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)+"
# Whole texts, names and comments, so that nothing is found inside one.
_TEST = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/"
    rf"|(?P<is>\bis{_GAP}(?:not{_GAP})?)(?:(?P<truth>true|false)\b|(?P<distinct>distinct)\b)",
    re.IGNORECASE | re.DOTALL,
)


def parsed(text: str) -> pl.Expr:
    """Parse a condition.

    polars turns `is true` into `= true`, which is NULL for NULL. To find out which comparisons were
    such tests, the text is parsed once more with `true` and `false` exchanged in all of them: where
    the two trees differ, there was a test.

    Raises:
        pl.exceptions.PolarsError: it does not parse, or polars would parse it as something else.
    """
    expression = pl.sql_expr(text)
    if any(found["distinct"] for found in _TEST.finditer(text)) and _is_cut_short(
        tree_of(expression)
    ):
        problem = (
            "`is distinct from` takes everything after it as its right side; write it in "
            "parentheses, as in `(a is distinct from b) and c`"
        )
        raise pl.exceptions.SQLSyntaxError(problem)
    exchanged = _TEST.sub(_exchanged, text)
    if exchanged == text:
        return expression
    return expression_of(_told(tree_of(expression), tree_of(pl.sql_expr(exchanged))))


def _exchanged(found: re.Match[str]) -> str:
    if found["truth"] is None:
        return found[0]
    return found["is"] + ("false" if found["truth"].lower() == "true" else "true")


def _is_cut_short(tree: Any) -> bool:
    """Return whether AND or OR ended up on the right side of a comparison of that kind."""
    if isinstance(tree, list):
        return any(_is_cut_short(each) for each in tree)
    if not isinstance(tree, dict) or "Literal" in tree:
        return False
    if tree.get("op") in ("EqValidity", "NotEqValidity"):
        right = tree["right"].get("BinaryExpr")
        if right is not None and right["op"] in ("And", "Or", "Xor"):
            return True
    return any(_is_cut_short(each) for each in tree.values())


def _told(tree: Any, exchanged: Any) -> Any:
    if tree == exchanged:
        return tree
    if isinstance(tree, list):
        return [_told(*pair) for pair in zip(tree, exchanged, strict=True)]
    if "Literal" in tree:
        return tree
    told = {key: _told(child, exchanged[key]) for key, child in tree.items()}
    if tree.get("op") == "Eq" and "Literal" in tree["right"]:
        told["op"] = "EqValidity" if tree["right"] != exchanged["right"] else "Eq"
    return told
