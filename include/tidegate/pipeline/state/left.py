"""Free a target in the ledger that a retired pipeline left (design §4, owner).

A retirement is recorded in the target first. A ledger that was restored from a backup, or whose
process was killed, may still have the pipeline that ended; the target says which one that is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import LedgerMoved, TargetOwned
from tidegate.ledger.restoring import fence_off, remove_rows
from tidegate.pipeline.state.again import again_if
from tidegate.pipeline.state.places import is_same_place
from tidegate.target.owner import Owner
from tidegate.target.retired import retirement_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


def has_ended(state: PipelineState, roots: Roots, storage: Storage) -> bool:
    """Return whether a pipeline has ended in a target, and has left it: only the ledger lags."""
    ended = retirement_of(storage, roots.target, state.name)
    if ended is None or ended.ledger != state.ledger_id:
        return False
    claims = roots.grounds(storage).read()
    # The work directory's file is deleted last; a new owner of the target may have another one.
    return (claims.target or claims.work) != Owner(state.name, state.ledger_id)


def check_registered(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Check that no other pipeline is registered for a target, unless it has left it.

    Raises:
        TargetOwned: one is.
    """
    for other in _others(roots, ledger, storage):
        if not has_ended(other, roots, storage):
            raise TargetOwned(target=roots.target, owner=other.name, pipeline=ledger.name)


def forget_ended(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Remove the pipelines from the ledger that have ended in a target and left it."""
    for other in _others(roots, ledger, storage):
        if has_ended(other, roots, storage):
            forget(replace(ledger, name=other.name))


def forget(ledger: Ledger) -> None:
    """Remove a pipeline that has ended from the ledger."""
    again_if(LedgerMoved, lambda: _forget(ledger))


def _forget(ledger: Ledger) -> None:
    before = fence_off(ledger)
    if before is not None:
        remove_rows(ledger, before)


def _others(roots: Roots, ledger: Ledger, storage: Storage) -> Iterator[PipelineState]:
    """Yield the other pipelines that a ledger has registered for a target."""
    for other in ledger.pipeline.others():
        if is_same_place(storage, other.target, roots.target):
            yield other
