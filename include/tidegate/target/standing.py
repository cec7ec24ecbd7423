"""Tell which revision of one partition stands, by the marker in its directory (AF-3.29).

Looks at no other partition, except for `check_keys`, which goes down one branch of the table.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import (
    MarkerInvalid,
    PartitionPathInvalid,
    PublishedTableMissing,
    SourceFileGone,
)
from tidegate.model.partition import (
    DEFAULT_NAME,
    HIVE_DEFAULT_NAME,
    UNPARTITIONED_KEY,
    Partition,
    unescape,
)
from tidegate.model.partition_value import common_format, is_written
from tidegate.model.revision_folder import REVISIONS, revision_folders
from tidegate.model.wire import Value
from tidegate.target.marker import USUAL_NAME, is_hidden, pipeline_of_marker, read_marker

if TYPE_CHECKING:
    from tidegate.storage import Storage

_TIME = re.compile(r"\d[-/:.T \d]{2,}")
"""What a person may write for a day, a month or an hour."""
_SPELLING = f"`key=value` for each key of the table, or `{UNPARTITIONED_KEY}` if it has none"


@dataclass(frozen=True)
class StandingRevision(Value):
    """What the marker of a partition says that readers wait for."""

    revision: int
    rows: int
    files: int


def read_partition_path(text: str) -> Partition:
    """Parse the path of a partition of a table whose pipeline is not known.

    Args:
        text: such as `dt=2026-02-01/region=eu`, with or without escapes; `all` for a table without
            partitions.

    Raises:
        PartitionPathInvalid: it is no such path.
    """
    if text == UNPARTITIONED_KEY:
        return Partition(())
    keys = [part.partition("=") for part in text.strip("/").split("/")]
    if not all(key and value for key, _, value in keys):
        raise PartitionPathInvalid(path=text, expected=_SPELLING)
    return Partition.parse(text, tuple(unescape(key) for key, _, _ in keys), DEFAULT_NAME)


def standing_revision(
    storage: Storage, table: str, partition: Partition, marker: str | None = None
) -> StandingRevision | None:
    """Return the revision of a partition that readers by marker find; None if there is none.

    Args:
        storage: the one that has the table.
        table: the table root.
        partition: a partition of the table.
        marker: the only name that a marker may have; by default any hidden file with the content
            of a marker is one, and the newer revision counts.

    Raises:
        PublishedTableMissing: there is no table.
        MarkerInvalid: the file with the marker's name is not a marker of Tidegate.
    """
    folder = posixpath.join(table, partition.path).rstrip("/")
    found: list[StandingRevision] = []
    # The directory of the partition itself, or those of single revisions, the newest first.
    for place in (folder, *revision_folders(storage, folder)):
        names = [name for name in storage.list_names(place) if is_hidden(name)]
        found += [
            read
            for name in names
            if marker in {None, name}
            and name != REVISIONS
            and (read := _read(storage, f"{place}/{name}", strict=name in {marker, USUAL_NAME}))
        ]
        if place != folder and found:
            break
    if not found and not storage.exists(table):
        raise PublishedTableMissing(root=table, found="nothing")
    return max(found, key=lambda read: read.revision, default=None)


def check_keys(
    storage: Storage, table: str, partition: Partition, *, is_beginning: bool = False
) -> None:
    """Check that a partition without a marker may get one: that the table has its keys.

    A table that has no directories yet has any keys. If all values of a key are days, months or
    hours, no other spelling of a time will be one.

    Args:
        storage: the one that has the table.
        table: the table root.
        partition: the one that may come.
        is_beginning: whether it may be the beginning of several, with the first keys alone.

    Raises:
        PartitionPathInvalid: the table has others, or spells times otherwise.
    """
    folder, keys = table, list[str]()
    for name, value in partition.values:
        entries = _levels(storage, folder)
        if name not in entries:
            others = sorted(entries)[:1]
            if others or standing_revision(storage, folder, Partition(())):
                raise _other_keys(partition, [*keys, *others])
            return
        _check_spelling(partition, value, entries[name])
        folder = f"{folder}/{entries[name][0]}"
        keys.append(name)
    if is_beginning:
        return
    deeper = sorted(_levels(storage, folder))[:1]
    if deeper:
        raise _other_keys(partition, [*keys, *deeper])


def _check_spelling(partition: Partition, value: str | None, entries: list[str]) -> None:
    others = {unescape(name.partition("=")[2]): name for name in entries}
    for missing in (DEFAULT_NAME, HIVE_DEFAULT_NAME):
        others.pop(missing, None)
    known = common_format(others)
    if known is not None and _TIME.fullmatch(value or "") and not is_written(str(value), known):
        expected = f"a time written as in {unescape(min(others.values()))}"
        raise PartitionPathInvalid(path=str(partition), expected=expected)


def _levels(storage: Storage, folder: str) -> dict[str, list[str]]:
    """Return each key that directories here are named after, with all of them."""
    found: dict[str, list[str]] = {}
    for name in storage.list_names(folder):
        if "=" in name and not is_hidden(name):
            found.setdefault(unescape(name.partition("=")[0]), []).append(name)
    return found


def is_iceberg(storage: Storage, table: str) -> bool:
    """Return whether a directory is that of an Iceberg target, which has no markers."""
    owned = storage.exists(f"{table}/data/{OWNER_FILE}")
    return owned and storage.exists(f"{table}/metadata")


def _other_keys(partition: Partition, keys: list[str]) -> PartitionPathInvalid:
    form = "/".join(f"{key}=…" for key in keys)
    expected = form or f"`{UNPARTITIONED_KEY}`: the table has no partitions"
    return PartitionPathInvalid(path=str(partition), expected=expected)


def _read(storage: Storage, path: str, *, strict: bool) -> StandingRevision | None:
    try:
        content = storage.read_bytes(path)
    except SourceFileGone:
        # A commit retracted it in this moment.
        return None
    if not strict and pipeline_of_marker(content) is None:
        return None
    said = read_marker(path, content)
    revision, rows = said["revision"], said.get("rows")
    if not (isinstance(revision, int) and isinstance(rows, int)):
        raise MarkerInvalid(path=path, found="no numbers as its revision and rows")
    return StandingRevision(revision, rows, files=len(said["files"]))
