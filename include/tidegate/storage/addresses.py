"""Addresses of objects in a store: `s3://bucket/key`, which are joined and cut like paths."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

S3 = "s3://"


class ObjectName(NamedTuple):
    """The name of an object."""

    bucket: str
    key: str
    """Without a slash in front; empty for the bucket itself."""


def is_object(path: str) -> bool:
    """Return whether a path is the address of an object, not one of a mounted file system."""
    return path.startswith(S3)


def named(address: str) -> ObjectName:
    """Split the address of an object."""
    bucket, _, key = address.removeprefix(S3).partition("/")
    return ObjectName(bucket, key)


def address(bucket: str, key: str) -> str:
    """Return the address of an object; see `named`."""
    return f"{S3}{bucket}/{key}"


def normal(path: str) -> str:
    """Resolve the `..` of a path by its text alone, and of an address below its bucket."""
    if not is_object(path):
        return posixpath.normpath(path)
    bucket, key = named(path)
    inside = posixpath.normpath(f"/{key}").lstrip("/")
    return address(bucket, inside).rstrip("/")


def above(path: str) -> tuple[str, ...]:
    """Return the directories that a path is in, the innermost first, up to the root or bucket."""
    found = []
    top = f"{S3}{named(path).bucket}" if is_object(path) else ""
    while path != top and posixpath.dirname(path) != path:
        path = posixpath.dirname(path)
        found.append(path)
    return tuple(found)
