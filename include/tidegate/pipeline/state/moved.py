"""Recognise a target or a work directory that was moved, and follow it (design §4, owner).

Moved is what stands in its new place as the pipeline's own, with nothing in the place that the
ledger knows. A copy beside the original is no move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.pipeline.state.left import forget_ended
from tidegate.pipeline.state.places import is_same_place, worked_in
from tidegate.stage import layout
from tidegate.target.owner import Owner

if TYPE_CHECKING:
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage
    from tidegate.target.owner import Claims


def were_moved(roots: Roots, claims: Claims, ledger: Ledger, storage: Storage) -> bool:
    """Return whether target or work directory were moved to where the pipeline file says."""
    state = ledger.pipeline.find()
    if state is None:
        return False
    if claims.fits and is_same_place(storage, state.target, roots.target):
        return False
    own = Owner(state.name, state.ledger_id)
    if claims.target != own or claims.work != own:
        return False
    return _are_gone(_known(roots, state, ledger), roots, claims, storage)


def with_work_moved(roots: Roots, claims: Claims, storage: Storage) -> Claims:
    """Return the claims as they are once a move of the work directory is followed, if it was moved.

    For a ledger that does not know the pipeline, so that the files alone have to tell.
    """
    named = (layout.owner_file(place) for place in (claims.told_work, roots.work))
    is_left, is_there = map(storage.exists, named)
    was_moved = claims.target == claims.work and not is_left and is_there
    return as_followed(roots, claims) if was_moved else claims


def as_followed(roots: Roots, claims: Claims) -> Claims:
    """Return the claims as they are once a move is followed."""
    return replace(claims, told_work=roots.work, fits=True)


def target_was_moved(roots: Roots, ledger: Ledger, storage: Storage) -> bool:
    """Return whether the target was moved to where the pipeline file says."""
    state = ledger.pipeline.find()
    if state is None:
        return False
    if roots.grounds(storage).read().target != Owner(state.name, state.ledger_id):
        return False
    return not storage.exists(replace(roots, target=state.target).grounds(storage).target_file)


def follow_move(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Register the new place of a target and a work directory, if they were moved.

    The ledger comes first; a crash in between leaves a file that names the old work directory, by
    which the next call recognises the move again. The caller writes the missing file.
    """
    if not were_moved(roots, roots.grounds(storage).read(), ledger, storage):
        return
    forget_ended(roots, ledger, storage)
    state = ledger.pipeline.get()
    known = _known(roots, state, ledger)
    ledger.pipeline.move(storage.real_path(roots.target), known.work, roots.work)
    grounds = roots.grounds(storage)
    if not grounds.read().fits:
        storage.delete(grounds.target_file)


def _known(roots: Roots, state: PipelineState, ledger: Ledger) -> Roots:
    return replace(roots, target=state.target, work=worked_in(ledger) or roots.work)


def _are_gone(known: Roots, roots: Roots, claims: Claims, storage: Storage) -> bool:
    """Return whether nothing is left in the places that the pipeline file no longer names."""
    old, new = known.grounds(storage), roots.grounds(storage)
    return all(
        is_same_place(storage, before, now) or not storage.exists(file)
        for before, now, file in (
            (old.target, new.target, old.target_file),
            (old.work, new.work, old.work_file),
            (claims.told_work, new.work, layout.owner_file(claims.told_work)),
        )
    )
