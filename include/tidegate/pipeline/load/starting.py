"""Fix where the first window begins, in the work directory before the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.start import FixedStart
from tidegate.model.wire import digest, pretty
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from tidegate.storage import Storage


def fix_start(storage: Storage, work: str, found: FixedStart) -> FixedStart:
    """Write down where the first window begins, unless it was written before.

    Otherwise, if the ledger is lost before the first announce, `latest` would move.

    Args:
        storage: the storage of the work directory.
        work: the work directory.
        found: the boundary that `source.start` stands for now.

    Returns:
        The boundary that was written first.

    Raises:
        StateFileDamaged: it is not as it was written.
    """
    path = layout.start_file(work, digest(found.source_identity))
    storage.write_once(path, pretty(found.to_json()))
    return read_stored(storage, path, FixedStart)
