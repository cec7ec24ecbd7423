"""Tell which plans were abandoned, from the files beside them. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import WindowNotFound
from tidegate.model.abandoned import AbandonedPlan
from tidegate.model.sealed import SealedWindow
from tidegate.pipeline.state.plan_files import announces_in
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.ledger import Ledger
    from tidegate.storage import Storage


def abandonment_of(
    storage: Storage, uri: str, names: Sequence[str] | None = None
) -> AbandonedPlan | None:
    """Return the newest record that a plan was abandoned; None if there is none.

    Args:
        storage: of the plan.
        uri: its directory.
        names: what is in it, as listed a moment ago; None: it is listed here.
    """
    found = [
        read_stored(storage, f"{uri}/{name}", AbandonedPlan)
        for name in (storage.list_names(uri) if names is None else names)
        if layout.is_abandoned_file(name)
    ]
    return max(found, key=lambda item: item.number, default=None)


def is_abandoned(storage: Storage, uri: str) -> bool:
    """Return whether a plan was abandoned, and not announced after all.

    Its window may have been taken over between the record and the ledger, and announced since.
    """
    record = abandonment_of(storage, uri)
    return record is not None and not any(
        read_stored(storage, f"{uri}/{name}", SealedWindow).number > record.number
        for name in announces_in(storage, uri)
    )


def has_begun(ledger: Ledger, storage: Storage, sequence: int) -> bool:
    """Return whether a window of the ledger is being abandoned: only the ledger has yet to know.

    That begins with the record beside its newest plan. False once the ledger knows.
    """
    try:
        uri = ledger.plans.uri(sequence)
    except WindowNotFound:
        return False
    return uri is not None and is_abandoned(storage, uri)


def abandoned_plans(storage: Storage, work: str, sequence: int) -> Iterator[AbandonedPlan]:
    """Yield the abandoned plans of a window."""
    root = layout.window_root(work, sequence)
    for plan in storage.list_names(root):
        record = abandonment_of(storage, f"{root}/{plan}")
        if record is not None and is_abandoned(storage, f"{root}/{plan}"):
            yield record


def all_abandoned_plans(storage: Storage, work: str) -> Iterator[AbandonedPlan]:
    """Yield the abandoned plans of every window."""
    for name in storage.list_names(layout.windows_root(work)):
        if name.isdecimal():
            yield from abandoned_plans(storage, work, int(name))
