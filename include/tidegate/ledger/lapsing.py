"""Check, inside the caller's transaction, whether a proposal may still be committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import PublicationLapsed
from tidegate.ledger.schema import contribution, partition
from tidegate.model.plan import WindowKind
from tidegate.model.publication import PublicationState

if TYPE_CHECKING:
    from tidegate.ledger import rows
    from tidegate.model.partition import Partition


def check_current(
    connection: sa.Connection, name: str, target: Partition, row: rows.Row | None
) -> None:
    """Check that a proposal may be held or committed.

    Raises:
        PublicationLapsed: it was replaced, or its content is no longer complete.
    """
    if row is None or row["state"] != PublicationState.PROPOSED.value:
        change = f"the proposal is {'unknown' if row is None else row['state']}"
    else:
        found = lapse(connection, row, as_shown=is_approved(row))
        if found is None:
            return
        change = found
    raise PublicationLapsed(pipeline=name, partition=str(target), change=change)


def lapse(connection: sa.Connection, row: rows.Row, *, as_shown: bool) -> str | None:
    """Return what has happened since a proposal was made that rules it out; None if nothing has.

    Args:
        connection: of the transaction.
        row: the proposal's.
        as_shown: a person approved this content; rows that arrived since wait for the next
            revision, unless they replace what was shown (design §4).
    """
    stands = connection.scalar(
        sa.select(partition.c.revision).where(
            partition.c.pipeline == row["pipeline"], partition.c.partition == row["partition"]
        )
    )
    if stands != row["base_revision"]:
        return f"revision {stands} stands since"
    query = sa.select(contribution).where(
        contribution.c.pipeline == row["pipeline"], contribution.c.partition == row["partition"]
    )
    effective = list(connection.execute(query.order_by(contribution.c.window)).mappings())
    shown = row["contributions"]
    fresh = [item for item in effective if shown.get(str(item["window"])) != item["plan_digest"]]
    if as_shown and not any(_replaces(item, shown) for item in fresh):
        return None
    if not fresh:
        return None
    windows = ", ".join(str(item["window"]) for item in fresh)
    if any(_resets(item) for item in fresh):
        return f"all its rows were read again since, by window {windows}"
    return f"+{sum(item['rows'] for item in fresh)} rows since, from window {windows}"


def is_approved(row: rows.Row) -> bool:
    """Return whether a person approved a publication."""
    return bool(row["approval"]) and bool(row["approval"]["approved"])


def _replaces(fresh: rows.Row, shown: rows.Row) -> bool:
    """Return whether a contribution replaces one that was shown, or all of them."""
    return str(fresh["window"]) in shown or _resets(fresh)


def _resets(row: rows.Row) -> bool:
    return row["overwrites"] or WindowKind(row["kind"]).replaces
