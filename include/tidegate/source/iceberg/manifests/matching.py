"""When two paths name one file, and two partitions are one (ICE-4.4, 4.14)."""

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
    """Strip scheme and authority: what a moved or otherwise opened table keeps (ICE-4.14)."""
    return location[len(path_origin(location)) :]


def path_origin(location: str) -> str:
    """Return scheme and authority, as far as a location has them: `s3://bucket`, `file:`, ``."""
    found = _ORIGIN.match(location)
    return found[0] if found else ""


def rival_paths(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return for each path the others that only scheme or authority tell from it (ICE-4.15)."""
    by_key: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        by_key[path_key(path)].add(path)
    several = [found for found in by_key.values() if len(found) > 1]
    return {path: tuple(sorted(found - {path})) for found in several for path in found}


def partition_key(spec_id: int, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a key, equal if spec and all values are: floats by bits, NaN alike (ICE-4.4)."""
    return spec_id, *(_bits(value) if isinstance(value, float) else value for value in values)


def _bits(value: float) -> bytes:
    # Python finds 0.0 and -0.0 equal, and no NaN equal to another.
    return _NAN if math.isnan(value) else struct.pack(">d", value)
