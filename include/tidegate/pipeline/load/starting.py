"""Fix where the first window begins, once and for all: in the work directory before the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.start import FixedStart
from tidegate.model.wire import digest, pretty
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from tidegate.storage import Storage


def fix_start(storage: Storage, work: str, found: FixedStart) -> FixedStart:
    """Write down where the first window begins, unless that was done before.

    A ledger that is lost before the first announce would else take what `latest` is by then.

    Args:
        storage: where the work directory stands.
        work: the work directory.
        found: what `source.start` comes to now.

    Returns:
        What was written first.

    Raises:
        StateFileDamaged: it is not as it was written.
    """
    path = layout.start_file(work, digest(found.source_identity))
    storage.write_once(path, pretty(found.to_json()))
    return read_stored(storage, path, FixedStart)
