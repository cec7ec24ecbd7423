"""Own the late root of a pipeline, if it has one, and find those that it had before."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tidegate.config.late_data import LateDataConfig
from tidegate.errors import LateRootUnfit, SecretMissing, StateFileDamaged, StateFileLost
from tidegate.pipeline.state.places import late_root_in
from tidegate.pipeline.state.plan_files import read_plan
from tidegate.stage import layout
from tidegate.storage import same_file_system
from tidegate.target.late_root import check_late_root, claim_late_root

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    _check_linked(roots.late, roots, ledger)
    ledger_id = ledger.pipeline.get().ledger_id
    claim_late_root(storage, roots.late, ledger.name, ledger_id, layout.scratch_root(roots.work))


def check_own_late_root(roots: Roots, ledger: Ledger, storage: Storage) -> None:
    """Check what `own_late_root` would refuse. Writes nothing.

    Raises:
        LateRootUnfit: it belongs to another one, or a staged file cannot be linked to it.
    """
    if roots.late is None:
        return
    _check_linked(roots.late, roots, ledger)
    state = ledger.pipeline.find()
    check_late_root(storage, roots.late, ledger.name, state.ledger_id if state else None)


def _check_linked(late: str, roots: Roots, ledger: Ledger) -> None:
    if not same_file_system(roots.work, late):
        problem = f"it is not on the file system of {roots.work}, and publishing links files"
        raise LateRootUnfit(pipeline=ledger.name, path=late, problem=problem)


def planned_late_data(storage: Storage, plan: str) -> Any:
    """Return the key `commit.late_data` as a plan has it; None if the plan cannot be read."""
    try:
        return read_plan(storage, plan).config.get("commit", {}).get("late_data")
    except (StateFileLost, StateFileDamaged):
        return None


def late_roots_of(storage: Storage, plans: Iterable[str]) -> list[str]:
    """Return the late roots that a pipeline had when its windows were planned, each once.

    Args:
        storage: of the work directory.
        plans: directories of plans; one without a plan that can be read tells of no root.
    """
    found: dict[str, None] = {}
    seen: list[Any] = [None]
    for uri in plans:
        late_data = planned_late_data(storage, uri)
        if late_data in seen:
            continue
        seen.append(late_data)
        with contextlib.suppress(SecretMissing, ValueError):
            root = late_root_in(LateDataConfig.model_validate(late_data))
            found |= {root: None} if root is not None else {}
    return list(found)
