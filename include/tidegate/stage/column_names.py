"""Refuse columns that readers cannot tell from each other by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.errors import ColumnsAlike

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_unlike(columns: Iterable[pa.Field], parent: str = "") -> None:
    """Check that no two columns, or fields of one struct, have names that differ only in case.

    Args:
        columns: of the files.
        parent: the path of the struct whose fields they are, for the message; empty at the top.

    Raises:
        ColumnsAlike: two have. Spark does not tell upper from lower case, at any depth.
    """
    seen: dict[str, str] = {}
    for column in columns:
        path = f"{parent}{column.name}"
        other = seen.setdefault(column.name.casefold(), path)
        if other != path:
            raise ColumnsAlike(column=other, other=path)
        _check_within(column.type, f"{path}.")


def _check_within(kind: pa.DataType, parent: str) -> None:
    if pa.types.is_struct(kind):
        check_unlike(kind, parent)
        return
    for place in range(kind.num_fields):
        _check_within(kind.field(place).type, parent)
