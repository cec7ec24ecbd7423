"""The keys of a target's partitions, as a pipeline file and a plan have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tidegate.config.words import NOT_BUILT, KeyProblem, suggest
from tidegate.model.partition import PartitionField, Transform

_CALL = re.compile(r"([A-Za-z_]+)\s*\((.*)\)", re.DOTALL)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_MADE = {
    transform.value: transform
    for transform in Transform
    if transform not in {Transform.IDENTITY, Transform.STATIC}
}
_LATER_FUNCTIONS = ("year", "week", "minute", "bucket", "truncate")


def _read_fields(found: Any) -> Any:
    """Read a mapping, as in a pipeline file, or a list of mappings, as in a plan."""
    if isinstance(found, list | tuple) and all(isinstance(item, PartitionField) for item in found):
        return tuple(found)
    if isinstance(found, list) and all(isinstance(item, Mapping) for item in found):
        pairs = [pair for item in found for pair in item.items()]
        found = dict(pairs)
        if len(found) < len(pairs):
            msg = "a partition key is given twice"
            raise ValueError(msg)
    if not isinstance(found, Mapping):
        msg = "expected a mapping such as {dt: day(ordered_at), region: region}"
        raise ValueError(msg)  # noqa: TRY004 (pydantic collects ValueError)
    return tuple(_read_field(str(name), found[name]) for name in found)


def _read_field(name: str, found: Any) -> PartitionField:
    if not name or name.startswith(("_", ".")):
        problem = "a key that starts with '_' or '.' would make hidden directories"
        raise KeyProblem(problem, key=name)
    if not isinstance(found, str) or not found.strip():
        problem = f"expected a column, or day(), hour() or month() of one; found {found!r}"
        raise KeyProblem(problem, key=name)
    literal = _LITERAL.fullmatch(found.strip())
    if literal:
        return PartitionField(name, literal.group(1).replace("''", "'"), Transform.STATIC)
    call = _CALL.fullmatch(found.strip())
    if not call:
        return PartitionField(name, found.strip(), Transform.IDENTITY)
    function, column = call.group(1).lower(), call.group(2).strip()
    if function not in _MADE:
        unknown = f"unknown function '{call.group(1)}'; {suggest(function, _MADE)}"
        known_later = f"{function}() {NOT_BUILT}; known: {', '.join(_MADE)}"
        problem = known_later if function in _LATER_FUNCTIONS else unknown
        raise KeyProblem(problem, key=name)
    if not column or column == name:
        problem = (
            f"{found}: the key needs a column, and a name other than the column's: "
            "readers would find two columns of one name"
        )
        raise KeyProblem(problem, key=name)
    return PartitionField(name, column, _MADE[function])


def _write_fields(fields: tuple[PartitionField, ...]) -> list[dict[str, str]]:
    # A list: the order is that of the path, and JSON with sorted keys would lose that of a mapping.
    return [{field.name: field_text(field)} for field in fields]


def field_text(field: PartitionField) -> str:
    """Return the definition of a partition key as it is written in the pipeline file."""
    if field.transform is Transform.IDENTITY:
        return field.column
    if field.transform is Transform.STATIC:
        return literal(field.column)
    return f"{field.transform.value}({field.column})"


def identity_text(field: PartitionField) -> str:
    """Return the definition of a partition key as far as it must not change (design §4).

    The value of a static key may: the next rows then go to another partition.
    """
    return "static" if field.transform is Transform.STATIC else field_text(field)


def literal(value: str) -> str:
    """Return a text as the definition of a static key."""
    return "'" + value.replace("'", "''") + "'"


PartitionBy = Annotated[
    tuple[PartitionField, ...],
    BeforeValidator(_read_fields),
    PlainSerializer(_write_fields),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]
