"""Give back everything that one holder of windows and partitions holds, because it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.ledger.schema import partition, window

if TYPE_CHECKING:
    from tidegate.ledger.ledger import Ledger


def let_go(ledger: Ledger, owner: str) -> tuple[int, ...]:
    """Give back the windows and the partitions that a holder holds.

    Fences stay as they are: if the holder is alive after all, it may finish its work until somebody
    else takes over. What it began stays begun, and the next holder continues it.

    Returns:
        The windows that were given back.
    """
    mine = (window.c.pipeline == ledger.name, window.c.owner == owner)
    with ledger.engine.begin() as connection:
        query = sa.select(window.c.sequence).where(*mine).order_by(window.c.sequence)
        held = tuple(connection.scalars(query.with_for_update()))
        connection.execute(sa.update(window).where(*mine).values(owner=None, expires=None))
    with ledger.engine.begin() as connection:
        connection.execute(
            sa.update(partition)
            .where(partition.c.pipeline == ledger.name, partition.c.claim_owner == owner)
            .values(claim_owner=None, claim_expires=None)
        )
    return held
