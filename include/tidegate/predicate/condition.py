"""Decide row by row whether a SQL condition is true. Reads no file and keeps no batch."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from tidegate.errors import PredicateInvalid
from tidegate.model.nearness import listed_with_nearest
from tidegate.predicate.row_wise import guesses_formats, is_row_wise
from tidegate.predicate.time_texts import with_exact_times
from tidegate.predicate.tree import expression_of, is_plain, tree_of
from tidegate.predicate.truth import parsed
from tidegate.predicate.typed_literals import with_typed_literals
from tidegate.predicate.whole_numbers import with_whole_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CLOCK = re.compile(
    r"\b(now\s*\(|current_(date|time|timestamp)\b|localtime(stamp)?\b)", re.IGNORECASE
)
# polars takes it for an argument if no OVER follows.
_LAST_VALUE = re.compile(r"\blast_value\s*\(", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


@dataclass(frozen=True)
class Predicate:
    """A condition on single rows; three-valued: a row for which it is NULL does not pass."""

    text: str
    where: str
    """The place in the pipeline file, for messages."""
    columns: tuple[str, ...]
    """The columns that it needs, in schema order."""
    expression: pl.Expr
    """The expression, with the schema's spelling of columns."""

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether it only compares unchanged columns with constants."""
        return is_plain(tree_of(self.expression))

    @staticmethod
    def parse(
        text: str, schema: pa.Schema, where: str, *, case_sensitive: bool = True
    ) -> Predicate:
        """Parse the text of a SQL expression in a pipeline file.

        Args:
            text: such as `region in ('eu', 'us') and amount >= 0`.
            schema: columns that may be named.
            where: key in the pipeline file, named in errors.
            case_sensitive: if false, a name without an exact match selects the only column that
                differs from it in case.

        Raises:
            PredicateInvalid: it does not parse, names an unknown column, is not a condition, or
                depends on other rows or on the clock.
        """
        return _parsed(text, schema, where, case_sensitive)

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the rows that pass.

        Args:
            batch: rows with at least `columns`.

        Returns:
            bool[batch.num_rows] without NULL.

        Raises:
            PredicateInvalid: a value cannot be computed with, such as text cast to a number.
        """
        frame = pl.DataFrame(pl.from_arrow(batch.select(list(self.columns))))
        try:
            passes = frame.select(self.expression.fill_null(value=False)).to_series()
        except pl.exceptions.PolarsError as refused:
            raise PredicateInvalid(
                where=self.where, predicate=self.text, problem=_first_line(refused)
            ) from refused
        if passes.len() != frame.height:
            # polars returns a single value if it finds that no column matters.
            passes = passes.new_from_index(0, frame.height)
        return passes.to_arrow()


# A task parses the same few conditions for each of its sub-splits.
@functools.lru_cache(maxsize=64)
def _parsed(text: str, schema: pa.Schema, where: str, case_sensitive: bool) -> Predicate:
    try:
        expression = parsed(with_exact_times(text))
        if not case_sensitive:
            expression = _spelled(expression, schema.names)
        problem = _problem(text, expression, schema)
        named = set(expression.meta.root_names())
        columns = tuple(name for name in schema.names if name in named)
        if problem is None:
            empty = _empty(schema, columns)
            expression = with_typed_literals(with_whole_numbers(expression, empty), empty)
            problem = _type_problem(expression, empty)
    except pl.exceptions.PolarsError as refused:
        raise PredicateInvalid(
            where=where, predicate=text, problem=_first_line(refused)
        ) from refused
    if problem is not None:
        raise PredicateInvalid(where=where, predicate=text, problem=problem)
    return Predicate(text, where, columns, expression)


def named_columns(text: str, where: str) -> tuple[str, ...]:
    """Return the columns that a condition needs, before any schema is known.

    Raises:
        PredicateInvalid: it does not parse.
    """
    try:
        return tuple(dict.fromkeys(pl.sql_expr(text).meta.root_names()))
    except pl.exceptions.PolarsError as refused:
        raise PredicateInvalid(
            where=where, predicate=text, problem=_first_line(refused)
        ) from refused


def _spelled(expression: pl.Expr, names: Sequence[str]) -> pl.Expr:
    """Use the schema's spelling of columns, if exactly one matches."""
    found: dict[str, str] = {}
    for asked in set(expression.meta.root_names()) - set(names):
        fits = [name for name in names if name.lower() == asked.lower()]
        if len(fits) == 1:
            found[asked] = fits[0]
    if not found:
        return expression
    return expression_of(_renamed(tree_of(expression), found))


def _problem(text: str, expression: pl.Expr, schema: pa.Schema) -> str | None:
    if not expression.meta.undo_aliases().meta.eq(expression):
        return "it is not one condition but names its result"
    unknown = sorted(set(expression.meta.root_names()) - set(schema.names))
    if unknown:
        return f"no column '{unknown[0]}'; found: {listed_with_nearest(unknown[0], schema.names)}"
    outside = _outside_problem(_QUOTED.sub("''", text), tree_of(expression))
    if outside is None and not expression.meta.root_names():
        return "it names no column"
    return outside


def _outside_problem(text: str, tree: Any) -> str | None:
    """Return why a row's result would depend on more than its own values."""
    if _CLOCK.search(text):
        return "it asks for the clock, so that reading again would give other rows"
    if _LAST_VALUE.search(text) or not is_row_wise(tree):
        return "it may look at other rows than its own (aggregate, window or sub-query)"
    if guesses_formats(tree):
        return "it guesses the format of texts; name it, as in `strptime(text, '%Y-%m-%d')`"
    return None


def _empty(schema: pa.Schema, columns: Sequence[str]) -> pl.DataFrame:
    arrays = [pa.nulls(0, schema.field(name).type) for name in columns]
    return pl.DataFrame(pl.from_arrow(pa.RecordBatch.from_arrays(arrays, list(columns))))


def _type_problem(expression: pl.Expr, empty: pl.DataFrame) -> str | None:
    found = empty.select(expression).to_series().dtype
    return None if found == pl.Boolean else f"expected a condition, found a value of type {found}"


def _renamed(tree: Any, names: Mapping[str, str]) -> Any:
    """Return an expression's tree with other columns; literals stay as they are."""
    if isinstance(tree, dict):
        return {
            key: names.get(child, child)
            if key == "Column"
            else child
            if key == "Literal"
            else _renamed(child, names)
            for key, child in tree.items()
        }
    if isinstance(tree, list):
        return [_renamed(child, names) for child in tree]
    return tree


def _first_line(refused: Exception) -> str:
    return str(refused).strip().split("\n", 1)[0]
