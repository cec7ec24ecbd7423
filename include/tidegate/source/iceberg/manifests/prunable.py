"""Translate a filter for metadata, weakened as far as necessary to be safe (ICE-5.14).

The reader's own parse is translated, so that a filter has one meaning. Parts that have another
meaning for Iceberg's metadata, or cannot be expressed, become "always true".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    Or,
)
from pyiceberg.expressions.literals import DateLiteral, TimestampLiteral, literal
from pyiceberg.types import (
    BooleanType,
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from tidegate.errors import PredicateInvalid
from tidegate.predicate import Predicate
from tidegate.predicate.tree import EXCHANGED, constants, listed, tree_of
from tidegate.source.iceberg.columns.columns import wanted_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.expressions.literals import Literal
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

_OPERATORS: Mapping[str, Any] = {
    "Eq": EqualTo,
    # Of a literal, which is not NULL.
    "EqValidity": EqualTo,
    "NotEq": NotEqualTo,
    "Lt": LessThan,
    "LtEq": LessThanOrEqual,
    "Gt": GreaterThan,
    "GtEq": GreaterThanOrEqual,
}
# The types of pyiceberg do not include positional arguments.
_Predicate = Callable[..., BooleanExpression]
_NULLS: Mapping[str, _Predicate] = {"IsNull": IsNull, "IsNotNull": NotNull}
_LISTS: Mapping[bool, _Predicate] = {False: In, True: NotIn}
_NEGATED = {
    "And": "Or",
    "Or": "And",
    "Eq": "NotEq",
    "NotEq": "Eq",
    "EqValidity": "NotEqValidity",
    "NotEqValidity": "EqValidity",
    "Lt": "GtEq",
    "LtEq": "Gt",
    "Gt": "LtEq",
    "GtEq": "Lt",
    "IsNull": "IsNotNull",
    "IsNotNull": "IsNull",
}
_INTEGERS = frozenset({pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32})

# Only for these columns does a literal mean the same to pyiceberg and to the reader: floats sort
# NaN differently, decimals are rounded, and the other types have no literals in filters.


def _plain(values: pl.Series) -> list[Literal[Any]]:
    return [literal(value) for value in values.to_list()]


def _dates(values: pl.Series) -> list[Literal[Any]]:
    return [DateLiteral(value) for value in values.to_physical().to_list()]


def _times(values: pl.Series) -> list[Literal[Any]]:
    return [TimestampLiteral(value) for value in values.to_physical().to_list()]


_LITERALS: Mapping[
    type[IcebergType], tuple[Callable[[pl.DataType], bool], Callable[[pl.Series], Any]]
] = {
    BooleanType: (lambda kind: kind == pl.Boolean, _plain),
    IntegerType: (lambda kind: type(kind) in _INTEGERS, _plain),
    LongType: (lambda kind: type(kind) in _INTEGERS, _plain),
    StringType: (lambda kind: kind == pl.String, _plain),
    DateType: (lambda kind: kind == pl.Date, _dates),
    TimestampType: (lambda kind: kind == pl.Datetime("us"), _times),
    TimestamptzType: (lambda kind: kind == pl.Datetime("us", "UTC"), _times),
}
"""Type of a column → the literals that it may be compared with, and their form in Iceberg."""


def prunable(schema: Schema, text: str | None) -> BooleanExpression:
    """Translate a filter.

    Args:
        schema: the table's columns; those of the expression are spelled as it does.
        text: as in the pipeline file; the reader reports mistakes in it.

    Returns:
        An expression without NOT that is true at least for all rows that pass.
    """
    if not text:
        return AlwaysTrue()
    columns = wanted_columns(schema)
    known = pa.schema([pa.field(column.name, column.type) for column in columns])
    try:
        # With exact names, the filter is refused before anything is read.
        predicate = Predicate.parse(text, known, "source.read.filter", case_sensitive=False)
    except PredicateInvalid:
        return AlwaysTrue()
    return _Translation(schema).of(tree_of(predicate.expression))


@dataclass(frozen=True)
class _Translation:
    schema: Schema

    def of(self, tree: Any, *, negated: bool = False) -> BooleanExpression:
        """Translate a condition, or its negation."""
        if "Cast" in tree:
            # polars defines the negation.
            return self.of(tree["Cast"]["expr"], negated=negated)
        found = listed(tree)
        if found is not None:
            return self._listed(*found, negated=negated)
        if "Function" in tree:
            return self._function(tree["Function"], negated=negated)
        if "BinaryExpr" in tree:
            return self._binary(**tree["BinaryExpr"], negated=negated)
        return AlwaysTrue()

    def _function(self, tree: Any, *, negated: bool) -> BooleanExpression:
        name = str(tree["function"].get("Boolean") if isinstance(tree["function"], dict) else "")
        if name == "Not":
            return self.of(tree["input"][0], negated=not negated)
        if name not in _NULLS:
            return AlwaysTrue()
        column = self._column(tree["input"][0])
        if column is None or type(column[1].field_type) not in _LITERALS:
            return AlwaysTrue()
        return _NULLS[_NEGATED[name] if negated else name](column[0])

    def _binary(self, left: Any, op: str, right: Any, *, negated: bool) -> BooleanExpression:
        wanted = _NEGATED.get(op, op) if negated else op
        if wanted in ("And", "Or"):
            sides = (self.of(side, negated=negated) for side in (left, right))
            return And(*sides) if wanted == "And" else Or(*sides)
        if constants(left) is not None:
            left, right, wanted = right, left, EXCHANGED.get(wanted, wanted)
        if wanted not in _OPERATORS:
            return AlwaysTrue()
        found = self._compared(left, right)
        return AlwaysTrue() if found is None else _OPERATORS[wanted](found[0], *found[1])

    def _listed(self, looked_for: Any, values: Any, *, negated: bool) -> BooleanExpression:
        found = self._compared(looked_for, values)
        if found is None:
            return AlwaysTrue()
        return _LISTS[negated](*found)

    def _compared(self, tree: Any, values: Any) -> tuple[str, Sequence[Literal[Any]]] | None:
        """Return a column and the literals that it is compared with, if these are the two sides."""
        column, found = self._column(tree), constants(values)
        if column is None or found is None or found.null_count():
            return None
        name, field = column
        fits, literals = _LITERALS.get(type(field.field_type), (None, None))
        if fits is None or literals is None or not fits(found.dtype):
            return None
        return name, literals(found)

    def _column(self, tree: Any) -> tuple[str, NestedField] | None:
        """Find the column, or the field of a struct, that a node names."""
        path = _path(tree)
        fields: Sequence[NestedField] = self.schema.fields if path else ()
        found = None
        for name in path or ():
            found = next((field for field in fields if field.name == name), None)
            kind = found.field_type if found else None
            fields = kind.fields if isinstance(kind, StructType) else ()
        whole_name = self.schema.find_column_name(found.field_id) if found else None
        return None if found is None or whole_name is None else (whole_name, found)


def _path(tree: Any) -> list[str] | None:
    if not isinstance(tree, dict):
        return None
    if "Column" in tree:
        return [tree["Column"]]
    inner = tree.get("Function")
    if inner is None or not isinstance(inner["function"], dict):
        return None
    field = inner["function"].get("StructExpr")
    if not isinstance(field, dict) or "FieldByName" not in field:
        return None
    outer = _path(inner["input"][0])
    return None if outer is None else [*outer, field["FieldByName"]]
