"""The file system by which Arrow's datasets reach what a storage has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.storage.addresses import S3, is_object
from tidegate.storage.s3_client import arrow_options

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.fs as pafs

    from tidegate.storage.stores import Stores


def arrow_files(storage: Stores, root: str) -> tuple[pafs.FileSystem, Callable[[str], str]]:
    """Return a file system, and how it names the files below a root.

    It has the credentials of now, and does not renew them.
    """
    import pyarrow.fs as pafs

    if not is_object(root):
        return pafs.LocalFileSystem(), str
    options = arrow_options(storage.objects.calls.options)
    return pafs.S3FileSystem(**options), lambda path: path.removeprefix(S3)
