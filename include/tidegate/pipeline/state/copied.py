"""Recognise a ledger that was copied, as with the whole folder of a pipeline (design §4, owner).

A copy names the places of the original, and has its id. Only where it is tells the two apart, which
the file of the work directory says.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tidegate.errors import LedgerCopied, LedgerUnreachable
from tidegate.ledger.places import has_ledger, is_same_file
from tidegate.target.owner import Owner

if TYPE_CHECKING:
    from tidegate.ledger import Ledger
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


def refuse_copied(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Check that the ledger in use is no copy of the one that a work directory belongs to.

    Args:
        roots: the directories that the ledger names, whoever's they are.
        ledger: the one in use.
        storage: of both directories.

    Raises:
        LedgerCopied: the original is still where it was.
    """
    owner = roots.grounds(storage).read().work
    here = ledger.place
    if owner is not None and here is not None and _has_original(owner, here):
        raise LedgerCopied(
            pipeline=ledger.name,
            target=roots.target,
            work=roots.work,
            original=str(owner.place),
            ledger=here,
        )


def note_place(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Write down where the ledger of an own work directory is, if it is not known or was moved.

    What cannot be looked at stays noted: nobody drops anything here.
    """
    grounds, here = roots.grounds(storage), ledger.place
    owner = grounds.read().work
    if owner is None or here is None or owner.place == here:
        return
    with contextlib.suppress(LedgerUnreachable):
        if not _has_original(owner, here):
            grounds.note(Owner(owner.pipeline, owner.ledger, here))


def _has_original(owner: Owner, here: str) -> bool:
    """Return whether the ledger of an owner is at the place that was noted, and not the one here.

    If nothing is there any more, the ledger was moved.
    """
    noted = owner.place
    if noted is None or is_same_file(noted, here):
        return False
    return has_ledger(noted, owner.pipeline, owner.ledger)
