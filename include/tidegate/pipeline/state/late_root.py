"""Own the late root of a pipeline, if it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import LateRootUnfit
from tidegate.stage import layout
from tidegate.storage import same_file_system
from tidegate.target.late_root import claim_late_root

if TYPE_CHECKING:
    from tidegate.ledger import Ledger
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


def own_late_root(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Write down that the late root belongs to the pipeline, or check that it does.

    Raises:
        LateRootUnfit: it belongs to another one, or a staged file cannot be linked to it.
    """
    if roots.late is None:
        return
    if not same_file_system(roots.work, roots.late):
        problem = f"it is not on the file system of {roots.work}, and publishing links files"
        raise LateRootUnfit(pipeline=ledger.name, path=roots.late, problem=problem)
    ledger_id = ledger.pipeline.get().ledger_id
    claim_late_root(storage, roots.late, ledger.name, ledger_id, layout.scratch_root(roots.work))
