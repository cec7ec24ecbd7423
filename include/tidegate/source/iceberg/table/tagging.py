"""Protect the checkpoint's snapshot from expiry with a tag (ICE-2.23).

Tidegate writes nothing else to a source, and this only with `protect_cursor: tag`.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException, RESTError
from pyiceberg.table import StaticTable
from pyiceberg.table.refs import SnapshotRefType

from tidegate.errors import SourceUnreachable

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tidegate.model.instant import Instant

_log = logging.getLogger(__name__)


def tag_name(pipeline: str) -> str:
    """Return the name of a pipeline's tag."""
    return f"tidegate-{re.sub(r'[^A-Za-z0-9_.-]', '_', pipeline)}"


def tag_checkpoint(table: Table, source: str, pipeline: str, checkpoint: Instant) -> None:
    """Move the pipeline's tag to a checkpoint; nothing is written if it is already there.

    A snapshot that was expired meanwhile cannot be tagged, but this stops no run: the rows are
    taken in, and the next checkpoint is tagged again.

    Failure: the catalog stores the tag or it does not. A crash before it leaves the older tag,
    which the next announce moves.

    Raises:
        SourceUnreachable: the catalog did not answer, or another writer came in between
            (Transient).
    """
    if isinstance(table, StaticTable):
        _log.warning("%s: a table with a variant column cannot be tagged", source)
        return
    name, snapshot_id = tag_name(pipeline), int(checkpoint.id)
    standing = table.metadata.refs.get(name)
    if standing is not None and standing.snapshot_ref_type != SnapshotRefType.TAG:
        _log.warning("%s: '%s' is a branch, so the checkpoint stays untagged", source, name)
        return
    if standing is not None and standing.snapshot_id == snapshot_id:
        return
    if table.metadata.snapshot_by_id(snapshot_id) is None:
        _log.warning("%s: checkpoint %d was expired before it was tagged", source, snapshot_id)
        return
    try:
        with table.manage_snapshots() as changes:
            changes.create_tag(snapshot_id, name)
    except (CommitFailedException, RESTError, OSError) as failed:
        problem = f"tag '{name}' was not taken: {failed}"
        raise SourceUnreachable(source=source, problem=problem) from failed
