"""Compare places that may have several names, and find the one that a pipeline worked in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import StorageDenied, StorageSilent
from tidegate.stage import layout

if TYPE_CHECKING:
    from tidegate.ledger import Ledger
    from tidegate.storage import Storage


def is_same_place(storage: Storage, one: str, other: str) -> bool:
    """Compare by real path; a path that cannot be reached differs from one that can."""
    try:
        return storage.real_path(one) == storage.real_path(other)
    except (StorageDenied, StorageSilent):
        return one == other


def worked_in(ledger: Ledger) -> str | None:
    """Return the work directory that the newest window was planned in."""
    windows = ledger.windows.all()
    uri = ledger.plans.uri(windows[-1].window.sequence) if windows else None
    return uri.rpartition(f"/{layout.WINDOWS}/")[0] if uri else None
