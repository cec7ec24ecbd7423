"""Types of columns as Hive writes them: which one holds the values of another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)", re.IGNORECASE)
_ORDERS = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
"""A later type holds the values of an earlier one."""
MOST_DIGITS = 38


def wider(one: str, other: str) -> str | None:
    """Return a type that holds the values of both; None if there is none.

    Args:
        one: wins where both types hold the values of both.
        other: as the first one.
    """
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    if one.partition("<")[0] == other.partition("<")[0] and "<" in one:
        return _wider_nested(one, other)
    if one.startswith("decimal(") and other.startswith("decimal("):
        return _wider_decimal(one, other)
    for order in _ORDERS:
        if one in order and other in order:
            return max(one, other, key=order.index)
    return None


def holds(listed: str, found: str) -> bool:
    """Return whether every value of one type is a value of the listed one."""
    return wider(listed, found) == _plain(listed)


def _plain(kind: str) -> str:
    """Return a type without what makes no difference to the files of a table."""
    kind = _DECIMAL.sub(r"decimal(\1,\2)", kind)
    if "<" in kind:
        return kind
    kind = kind.replace(" ", "").lower()
    if kind.startswith(("varchar(", "char(")):
        return "string"
    return "timestamp" if kind.startswith("timestamp") else kind


def _wider_nested(one: str, other: str) -> str | None:
    head = one.partition("<")[0]
    parts, others = list(_parts(one)), list(_parts(other))
    if head != "struct":
        return nested(head, [wider(*pair) for pair in zip(parts, others, strict=True)])
    fields = dict(part.split(":", 1) for part in parts)
    for name, kind in (part.split(":", 1) for part in others):
        known = wider(fields[name], kind) if name in fields else kind
        if known is None:
            return None
        fields[name] = known
    return nested("struct", [f"{name}:{kind}" for name, kind in fields.items()])


def _wider_decimal(one: str, other: str) -> str | None:
    (digits, scale), (others, other_scale) = (
        map(int, kind[len("decimal(") : -1].split(",")) for kind in (one, other)
    )
    most = max(scale, other_scale)
    whole = max(digits - scale, others - other_scale)
    return f"decimal({whole + most},{most})" if whole + most <= MOST_DIGITS else None


def _parts(kind: str) -> Iterator[str]:
    """Yield what stands between the outer angle brackets, cut at the outer commas."""
    depth, start = 0, kind.index("<") + 1
    for at in range(start, len(kind)):
        depth += (kind[at] in "<(") - (kind[at] in ">)")
        if depth < 0 or (kind[at] == "," and not depth):
            yield kind[start:at]
            start = at + 1


def nested(head: str, parts: Sequence[str | None]) -> str | None:
    """Return a type with others in it; None if one of them is None."""
    known = [part for part in parts if part]
    return f"{head}<{','.join(known)}>" if len(known) == len(parts) else None


def quoted(kind: str) -> str:
    """Return a type as SQL of Spark reads it: names of fields may have any character."""
    head, inner, _ = kind.partition("<")
    if not inner:
        return kind
    parts: list[str | None] = []
    for part in _parts(kind):
        name, _, of = part.partition(":") if head == "struct" else ("", "", part)
        parts.append(f"{identifier(name)}:{quoted(of)}" if head == "struct" else quoted(of))
    return str(nested(head, parts))


def identifier(name: str) -> str:
    """Return a name as SQL of Spark reads it, whatever is in it."""
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
