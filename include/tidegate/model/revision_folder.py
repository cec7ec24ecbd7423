"""Name the directory that one revision has to itself, in the layout `revisions`.

It is `<partition>/_revisions/<revision>-<digest>`. Whoever lists the table passes `_revisions` by,
as every hidden name, and so sees no file twice. The last component is not hidden: the input formats
of Hadoop, which Hive and Spark read CSV with, would pass by a directory that they were sent to.
"""

from __future__ import annotations

import re
from typing import Protocol

from tidegate.errors import StorageDenied

REVISIONS = "_revisions"
_ENDS = re.compile(rf"(?:^|/){REVISIONS}/(\d{{6,}})-[0-9a-f]+$")


def revision_folder(root: str, revision: int, digest: str) -> str:
    """Return the directory of a revision.

    Args:
        root: the directory of its partition.
        revision: its number; six digits keep listings in order.
        digest: of its publication: an attempt that was taken back shares no directory.
    """
    return f"{root}/{REVISIONS}/{revision:06d}-{digest}"


def revision_of(folder: str) -> int | None:
    """Return the revision whose directory this is; None if it is none of `revision_folder`."""
    found = _ENDS.search(folder)
    return int(found[1]) if found else None


class Names(Protocol):
    """What tells the names in a directory: a storage, or a view of a folder."""

    def list_names(self, folder: str) -> list[str]:
        """List them, sorted; empty if there is no directory."""
        ...


def revision_folders(names: Names, root: str) -> list[str]:
    """Return the directories of single revisions of a partition, newest first; none in place."""
    place = f"{root}/{REVISIONS}"
    try:
        found = [f"{place}/{name}" for name in names.list_names(place)]
    except StorageDenied as denied:
        # Somebody has given a file this name.
        if isinstance(denied.__cause__, NotADirectoryError):
            return []
        raise
    numbered = [(number, path) for path in found if (number := revision_of(path)) is not None]
    return [path for _, path in sorted(numbered, reverse=True)]


def partition_of(folder: str) -> str:
    """Return the directory of the partition of which this is a revision's; else as it is."""
    return _ENDS.sub("", folder)
