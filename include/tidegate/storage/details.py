"""What a store knows of a file without reading it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NANOSECONDS = 1_000
"""Nanoseconds per microsecond."""


class FileDetails(NamedTuple):
    """Path, bytes, and when a file was last changed."""

    path: str
    size: int
    modified: int
    """In nanoseconds since 1970."""
    tag: str = ""
    """Of the content of an object (ETag): equal for equal objects, so that an object that was
    written again with its length and within a second is told. Empty on a disk."""


def nanoseconds(moment: datetime) -> int:
    """Return a time in nanoseconds since 1970."""
    # In whole numbers: a float of today's nanoseconds is off by up to two hundred of them.
    return (moment - _EPOCH) // _MICROSECOND * _NANOSECONDS
