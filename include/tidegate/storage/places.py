"""Resolve paths: below a root or outside it, on one file system, store, or two."""

from __future__ import annotations

import os

from tidegate.errors import PathEscapes
from tidegate.storage.addresses import is_object, normal
from tidegate.storage.refusals import refusal


def below(root: str, path: str) -> str:
    """Join a relative path to a root, and check that it stays below it, with links (PC-P11).

    Raises:
        PathEscapes: it does not.
    """
    joined = f"{root}/{path}"
    real_root = real_path_of(root)
    if not f"{real_path_of(joined)}/".startswith(f"{real_root}/") or ".." in path.split("/"):
        raise PathEscapes(path=joined, root=root)
    return joined


def same_file_system(one: str, other: str) -> bool:
    """Return whether a file can be moved between two paths as a whole.

    On disks a rename can if their nearest existing parents are on one file system.
    """
    if is_object(one) or is_object(other):
        return is_object(one) and is_object(other)
    return _device(one) == _device(other)


def _device(path: str) -> int:
    while True:
        try:
            return os.stat(path).st_dev
        except FileNotFoundError:
            path = os.path.dirname(path)
        except OSError as refused:
            raise refusal(path, refused) from refused


def real_path_of(path: str) -> str:
    """Resolve all links of a path, whether or not it exists."""
    if is_object(path):
        return normal(path)
    try:
        return os.path.realpath(path, strict=True)
    except FileNotFoundError:
        # The part before the missing name could be read, and there is nothing after it.
        return os.path.realpath(path)
    except OSError as refused:
        raise refusal(path, refused) from refused


def is_empty(folder: str) -> bool:
    """Return whether a directory has no name in it."""
    try:
        with os.scandir(folder) as items:
            return next(items, None) is None
    except OSError as refused:
        raise refusal(folder, refused) from refused
