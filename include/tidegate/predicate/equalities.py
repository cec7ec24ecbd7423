"""Read from a condition which values of which columns it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.predicate.tree import constants, listed, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tidegate.predicate.condition import Predicate


def equalities(predicate: Predicate) -> dict[str, pl.Series] | None:
    """Return column → the values that a condition allows it, of which none is NULL.

    Returns:
        None if the condition is anything else than `column = value` or `column in (values)`, of one
        column once, joined by `and`.
    """
    found: dict[str, pl.Series] = {}
    for named in _named(tree_of(predicate.expression)):
        if named is None or named[0] in found or named[1].null_count() or not named[1].len():
            return None
        found[named[0]] = named[1]
    return found


def _named(tree: Any) -> Iterator[tuple[str, pl.Series] | None]:
    both = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    if both is not None and both["op"] == "And":
        yield from _named(both["left"])
        yield from _named(both["right"])
        return
    sides = (both["left"], both["right"]) if both is not None and both["op"] == "Eq" else None
    yield _named_by(*(sides or listed(tree) or (None, None)))


def _named_by(one: Any, other: Any) -> tuple[str, pl.Series] | None:
    if not (isinstance(one, dict) and "Column" in one):
        one, other = other, one
    if not (isinstance(one, dict) and "Column" in one):
        return None
    values = constants(other)
    return None if values is None else (str(one["Column"]), values)
