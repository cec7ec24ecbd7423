"""Set contributions aside, and let them count again, inside the caller's transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.ledger import rows
from tidegate.ledger.schema import contribution, partition
from tidegate.model.aside import Aside
from tidegate.model.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tidegate.model.message import Contribution
    from tidegate.model.publication import Undo


# Made once: to put a query together takes longer than to carry it out.
CONTRIBUTIONS = (
    sa.select(contribution)
    .where(*(contribution.c[key] == sa.bindparam(key) for key in ("pipeline", "partition")))
    .order_by(contribution.c.window)
)
"""The contributions to one partition."""


def contributions_to(connection: sa.Connection, name: str, path: str) -> tuple[Contribution, ...]:
    """Read the contributions to the partition at a path, by window, without its values."""
    found = connection.execute(CONTRIBUTIONS, {"pipeline": name, "partition": path}).mappings()
    return tuple(rows.read_contribution(row, Partition(())) for row in found)


def set_aside(
    connection: sa.Connection, name: str, target: Partition, windows: Iterable[int], why: Aside
) -> None:
    """Let contributions that count stop to count."""
    connection.execute(
        sa.update(contribution)
        .where(*_of(name, target, windows), contribution.c.aside.is_(None))
        .values(aside=why.value)
    )


def release(
    connection: sa.Connection, name: str, target: Partition, windows: Iterable[int], at: datetime
) -> None:
    """Let contributions count that were set aside; the partition is pending then."""
    connection.execute(
        sa.update(contribution)
        .where(*_of(name, target, windows), contribution.c.aside.is_not(None))
        .values(aside=None, counts_as=None)
    )
    connection.execute(
        sa.update(partition)
        .where(
            partition.c.pipeline == name,
            partition.c.partition == target.path,
            partition.c.pending == "none",
        )
        .values(pending="pending", first_seen=at)
    )


def release_published(
    connection: sa.Connection,
    name: str,
    target: Partition,
    published: Mapping[str, str],
    at: datetime,
) -> None:
    """Let contributions count that a revision has: it proves a release that nothing else tells.

    Args:
        connection: of the transaction.
        name: the pipeline's.
        target: the partition.
        published: window → plan digest of what the revision has.
        at: when its commit began.
    """
    windows = [
        item.window
        for item in contributions_to(connection, name, target.path)
        if _is_proven(item, published.get(str(item.window)))
    ]
    if windows:
        release(connection, name, target, windows, at)


def undo(connection: sa.Connection, name: str, target: Partition, said: Undo) -> None:
    """Set aside what a revision has that is undone; an earlier plan of a window counts again."""
    for window, plan in _each(said.set_aside):
        connection.execute(
            sa.update(contribution)
            .where(*_of(name, target, [window]), contribution.c.plan_digest == plan)
            .values(aside=Aside.UNDONE.value, counts_as=said.counted_as.get(str(window)))
        )


def take_back(connection: sa.Connection, name: str, target: Partition, said: Undo) -> None:
    """Let count again what an undo had set aside, because its commit was taken back."""
    connection.execute(
        sa.update(contribution)
        .where(
            *_of(name, target, map(int, said.set_aside)),
            contribution.c.aside == Aside.UNDONE.value,
        )
        .values(aside=None, counts_as=None)
    )


def _is_proven(item: Contribution, published: str | None) -> bool:
    """Return whether rows that are set aside counted when a plan of their window was published.

    After an undo an earlier plan of the window may stand, and the newest one alone tells anything.
    """
    if item.aside is None or published is None:
        return False
    return item.aside is not Aside.UNDONE or published == item.plan_digest


def _of(name: str, target: Partition, windows: Iterable[int]) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        contribution.c.pipeline == name,
        contribution.c.partition == target.path,
        contribution.c.window.in_(list(windows)),
    )


def _each(plans: Mapping[str, str]) -> list[tuple[int, str]]:
    return sorted((int(window), plan) for window, plan in plans.items())
