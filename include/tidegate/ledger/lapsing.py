"""Check, inside the caller's transaction, whether a proposal may still be committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import PublicationLapsed
from tidegate.ledger import rows
from tidegate.ledger.schema import partition
from tidegate.ledger.setting_aside import contributions_to
from tidegate.model.counting import effective
from tidegate.model.publication import PublicationState, Undo

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition


def check_current(
    connection: sa.Connection,
    name: str,
    target: Partition,
    row: rows.Row | None,
    stands: int | None = None,
) -> None:
    """Check that a proposal may be held or committed.

    Args:
        connection: of the transaction.
        name: the pipeline's.
        target: the partition.
        row: the proposal's; None if there is none.
        stands: the partition's revision, as it was read in this transaction; None: it is read here.

    Raises:
        PublicationLapsed: it was replaced, or its content is no longer complete.
    """
    if row is None or row["state"] != PublicationState.PROPOSED.value:
        change = f"the proposal is {'unknown' if row is None else row['state']}"
    else:
        found = lapse(connection, row, as_shown=is_approved(row), stands=stands)
        if found is None:
            return
        change = found
    raise PublicationLapsed(pipeline=name, partition=str(target), change=change)


# Made once: to put a query together takes longer than to carry it out.
_STANDS = sa.select(partition.c.revision).where(
    *(partition.c[key] == sa.bindparam(key) for key in ("pipeline", "partition"))
)


def lapse(
    connection: sa.Connection, row: rows.Row, *, as_shown: bool, stands: int | None = None
) -> str | None:
    """Return what has happened since a proposal was made that rules it out; None if nothing has.

    Args:
        connection: of the transaction.
        row: the proposal's.
        as_shown: a person approved this content; rows that arrived since wait for the next
            revision, unless they replace what was shown (design §4).
        stands: the partition's revision, as it was read in this transaction; None: it is read here.
    """
    if stands is None:
        mine = {"pipeline": row["pipeline"], "partition": row["partition"]}
        stands = connection.scalar(_STANDS, mine)
    if stands != row["base_revision"]:
        return f"revision {stands} stands since"
    if (row["approval"] or {}).get("erases") is not None:
        # It only takes rows out of what stands, whatever waits to come next.
        return None
    shown = row["contributions"]
    fresh = [
        item
        for item in _effective(connection, row)
        if shown.get(str(item.window)) != item.plan_digest
    ]
    told = {*shown, *_undone(row)}
    if as_shown and not any(_replaces(item, told) for item in fresh):
        return None
    if not fresh:
        return None
    windows = ", ".join(str(item.window) for item in fresh)
    if any(item.replaces for item in fresh):
        return f"all its rows were read again since, by window {windows}"
    return f"+{sum(item.rows for item in fresh)} rows since, from window {windows}"


def _effective(connection: sa.Connection, row: rows.Row) -> list[Contribution]:
    """Return the contributions that count, as they will if the proposal is an undo."""
    found = contributions_to(connection, row["pipeline"], row["partition"])
    going = _undone(row)
    kept = [item for item in found if going.get(str(item.window)) != item.plan_digest]
    return list(effective(kept))


def _undone(row: rows.Row) -> Mapping[str, str]:
    """Return window → plan digest of what a proposal sets aside, if it is an undo."""
    said = rows.optional(Undo, row["undone"])
    return {} if said is None else said.set_aside


def is_approved(row: rows.Row) -> bool:
    """Return whether a person approved a publication."""
    return bool(row["approval"]) and bool(row["approval"]["approved"])


def _replaces(fresh: Contribution, told: Collection[str]) -> bool:
    """Return whether a contribution replaces one that was shown, or all of them."""
    return str(fresh.window) in told or fresh.replaces
