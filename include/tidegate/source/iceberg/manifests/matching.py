"""Compare paths of files, and partitions (ICE-4.4, 4.14)."""

from __future__ import annotations

import math
import re
import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?")
_NAN = b"nan"


def path_key(location: str) -> str:
    """Strip scheme and authority from a path, which change if a table is moved (ICE-4.14)."""
    return location[len(path_origin(location)) :]


def path_origin(location: str) -> str:
    """Return scheme and authority, as far as a location has them: `s3://bucket`, `file:`, ``."""
    found = _ORIGIN.match(location)
    return found[0] if found else ""


def rival_paths(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return for each path the others that differ only in scheme or authority (ICE-4.15)."""
    by_key: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        by_key[path_key(path)].add(path)
    several = [found for found in by_key.values() if len(found) > 1]
    return {path: tuple(sorted(found - {path})) for found in several for path in found}


def partition_key(spec_id: int, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a key that is equal if spec and values are, with floats compared by bits (ICE-4.4)."""
    return spec_id, *(_bits(value) if isinstance(value, float) else value for value in values)


def _bits(value: float) -> bytes:
    # For Python, 0.0 equals -0.0, and a NaN does not equal another.
    return _NAN if math.isnan(value) else struct.pack(">d", value)
