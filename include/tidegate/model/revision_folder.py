"""Name the directory that one revision has to itself, in the layout `revisions`.

It is `<partition>/_revisions/<revision>-<digest>`. Whoever lists the table passes `_revisions` by,
as every hidden name, and so sees no file twice. The last component is not hidden: the input formats
of Hadoop, which Hive and Spark read CSV with, would pass by a directory that they were sent to.
"""

from __future__ import annotations

import re

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


def partition_of(folder: str) -> str:
    """Return the directory of the partition of which this is a revision's; else as it is."""
    return _ENDS.sub("", folder)
