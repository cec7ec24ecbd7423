"""Guess the columns of a folder's directories from paths such as `region=eu/a.parquet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.errors import PartitionValueInvalid
from tidegate.model.partition import DEFAULT_NAME, HIVE_DEFAULT_NAME, unescape
from tidegate.source.files.partition_values import parse_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.source.files.listing import Listing

_GUESSED = ("long", "date")


def named_directory(listing: Listing) -> str | None:
    """Return the first directory of a folder that is named `key=value`; None if none is."""
    directories = (part for file in listing.files for part in file.path.split("/")[:-1])
    return next((name for name in directories if _parsed(name)), None)


def guess_keys(listing: Listing) -> dict[str, Any]:
    """Return the keys of `source` that make columns of a folder's directories (PC-R02).

    Returns:
        `partition_by`, each name with text as its type unless all values are whole numbers or
        dates, and `default_partition_name`; empty if not every file is in such directories.
    """
    values: dict[tuple[str, ...], list[set[str]]] = {}
    for path in {file.path.rpartition("/")[0] for file in listing.files}:
        parsed = [_parsed(name) for name in path.split("/")]
        found = [item for item in parsed if item is not None]
        if len(found) < len(parsed):
            return {}
        sets = values.setdefault(tuple(key for key, _ in found), [set() for _ in found])
        for seen, (_, value) in zip(sets, found, strict=True):
            seen.add(value)
    if len(values) != 1:
        return {}
    ((names, sets),) = values.items()
    is_ours = any(DEFAULT_NAME in seen for seen in sets)
    default_name = DEFAULT_NAME if is_ours else HIVE_DEFAULT_NAME
    kinds = (_kind(seen - {default_name}) for seen in sets)
    return {
        "partition_by": dict(zip(names, kinds, strict=True)),
        "default_partition_name": default_name,
    }


def _parsed(directory: str) -> tuple[str, str] | None:
    key, equals, value = directory.partition("=")
    return (unescape(key), unescape(value)) if key and equals and value else None


def _kind(values: set[str]) -> str:
    fitting = (kind for kind in _GUESSED if values and _all_are(kind, values))
    return next(fitting, "string")


def _all_are(kind: str, values: Iterable[str]) -> bool:
    try:
        for value in values:
            parse_value(value, kind, value)
    except PartitionValueInvalid:
        return False
    return True
