"""Compare a table as a metastore lists it with the one that a pipeline publishes."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from tidegate.errors import ListedTableDiffers
from tidegate.metastore.hive_types import holds, wider
from tidegate.model.metastore import ListedColumn
from tidegate.model.revision_folder import partition_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.metastore import ListedTable

_FILE = re.compile(r"^file:/+")
_STORE = re.compile(r"^s3[an]?://")


def same_place(one: str, other: str) -> bool:
    """Return whether two locations are the same directory, as a path or an address of a file."""
    return place(one) == place(other)


def agreed(
    name: str, found: ListedTable, wanted: ListedTable, *, changes_types: bool = True
) -> tuple[ListedColumn, ...]:
    """Return the columns that the listed table has to have.

    A table that a pipeline made follows its columns: new ones come last, and plain types only
    become wider. Somebody else's table stays as it is.

    Args:
        name: `database.table`, for the error.
        found: as it is listed; names are compared without case, as in Hive.
        wanted: as the pipeline publishes it.
        changes_types: whether its columns may become wider at all.

    Raises:
        ListedTableDiffers: readers of the table would not find what the pipeline publishes.
    """
    if found.pipeline not in {None, wanted.pipeline}:
        _refuse(name, "pipeline", str(wanted.pipeline), str(found.pipeline))
    # A table may go from the directory of one revision to that of the next.
    if partition_of(place(found.location)) != partition_of(place(wanted.location)):
        _refuse(name, "location", wanted.location, found.location)
    if found.format != wanted.format:
        _refuse(name, "format", wanted.format, found.format)
    keys, known_keys = _names(wanted.columns.keys), _names(found.columns.keys)
    if keys != known_keys:
        _refuse(name, "partition keys", ", ".join(keys), ", ".join(known_keys) or "none")
    for key, known_key in zip(wanted.columns.keys, found.columns.keys, strict=True):
        # Readers turn the text of a directory into the type of its key.
        if not holds(known_key.type, key.type) and not holds(known_key.type, "string"):
            _refuse(name, f"partition key '{key.name}'", key.type, known_key.type)
    columns = {column.name.lower(): column for column in found.columns.columns}
    for column in wanted.columns.columns:
        known = columns.get(column.name.lower())
        if known is not None and holds(known.type, column.type):
            continue
        kind = _followed(known, column.type, changes_types=changes_types)
        if kind is None or found.pipeline is None:
            part = f"column '{column.name}'"
            _refuse(name, part, column.type, "none" if known is None else known.type)
        columns[column.name.lower()] = ListedColumn(column.name.lower(), str(kind))
    return tuple(columns.values())


def _followed(known: ListedColumn | None, kind: str, *, changes_types: bool) -> str | None:
    """Return the type that a column gets: Hive changes no type that has others in it."""
    if known is None:
        return kind
    return None if "<" in known.type or not changes_types else wider(known.type, kind)


def _refuse(name: str, part: str, expected: str, found: str) -> None:
    raise ListedTableDiffers(table=name, part=part, expected=expected, found=found)


def _names(columns: Sequence[ListedColumn]) -> list[str]:
    return [column.name.lower() for column in columns]


def place(location: str) -> str:
    """Return a location as it can be compared, without the spellings of one scheme."""
    found = _STORE.sub("s3://", _FILE.sub("/", location))
    scheme, mark, path = found.rpartition("://")
    return f"{scheme}{mark}{posixpath.normpath(path)}"
