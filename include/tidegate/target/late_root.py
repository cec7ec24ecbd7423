"""Record whose late rows are below a late root, in the hidden file that names its owner (PC-L04).

The root is no target: it has no markers, and its partitions have no revisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.config import OWNER_FILE
from tidegate.errors import LateRootUnfit, OwnerInvalid
from tidegate.model.wire import pretty
from tidegate.target.owner import folders_above, read_owner_file

if TYPE_CHECKING:
    from tidegate.storage import Storage

_FORMAT = 1


def claim_late_root(storage: Storage, root: str, pipeline: str, ledger: str, scratch: str) -> None:
    """Write down that a late root belongs to a pipeline, or check that it does.

    Args:
        storage: of the root.
        root: the late root; made if it is missing.
        pipeline: its name.
        ledger: id that the ledger assigned to it.
        scratch: directory outside the root in which the file is written first.

    Raises:
        LateRootUnfit: it belongs to another pipeline, is inside the table of one, or has files of
            unknown origin.
    """
    if not check_late_root(storage, root, pipeline, ledger):
        named = {"format": _FORMAT, "ledger": ledger, "late_rows": True, "pipeline": pipeline}
        storage.write_once(f"{root}/{OWNER_FILE}", pretty(named), scratch)
        check_late_root(storage, root, pipeline, ledger)


def check_late_root(storage: Storage, root: str, pipeline: str, ledger: str | None) -> bool:
    """Check that a late root belongs to a pipeline, or to nobody. Writes nothing.

    Args:
        storage: of the root.
        root: the late root.
        pipeline: its name.
        ledger: id that the ledger assigned to it; None if the ledger does not know it.

    Returns:
        Whether it says that it belongs to the pipeline.

    Raises:
        LateRootUnfit: it belongs to another pipeline, is inside the table of one, or has files of
            unknown origin.
    """
    found = _owner(storage, f"{root}/{OWNER_FILE}")
    if found is None:
        _check_free(storage, root, pipeline)
        return False
    if found != (pipeline, ledger, True):
        problem = f"it belongs to pipeline '{found[0]}'"
        raise LateRootUnfit(pipeline=pipeline, path=root, problem=problem)
    return True


def is_late_root_of(storage: Storage, root: str, pipeline: str) -> bool:
    """Return whether a directory is a late root that belongs to a pipeline."""
    owner = _owner(storage, f"{root}/{OWNER_FILE}")
    return owner is not None and owner[0] == pipeline and owner[2]


def late_files(storage: Storage, root: str, pipeline: str) -> list[str]:
    """List the files below a late root, except the one that names its owner.

    Returns:
        Relative to the root; empty if it does not belong to the pipeline.
    """
    if not is_late_root_of(storage, root, pipeline):
        return []
    return [name for name in storage.list_files(root) if name != OWNER_FILE]


def _check_free(storage: Storage, root: str, pipeline: str) -> None:
    for folder in folders_above(storage, root):
        owner = _owner(storage, f"{folder}/{OWNER_FILE}")
        if owner is not None:
            problem = f"it is inside {folder}, which belongs to pipeline '{owner[0]}'"
            raise LateRootUnfit(pipeline=pipeline, path=root, problem=problem)
    if storage.list_files(root):
        problem = "it has files already, and none that names this pipeline as its owner"
        raise LateRootUnfit(pipeline=pipeline, path=root, problem=problem)


def _owner(storage: Storage, path: str) -> tuple[str, str, bool] | None:
    """Return pipeline, ledger, and whether it is a late root; None if there is no such file."""
    try:
        raw = read_owner_file(storage, path)
    except OwnerInvalid:
        return ("unknown", "", False)
    if raw is None:
        return None
    return str(raw["pipeline"]), str(raw["ledger"]), raw.get("late_rows") is True
