"""Replace what a ledger knows of one pipeline, in one transaction (design §4).

The rows are made in a ledger in memory by whoever restores; other pipelines are not touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import LedgerMoved
from tidegate.ledger import rows
from tidegate.ledger.schema import metadata, partition, pipeline, window

if TYPE_CHECKING:
    from tidegate.ledger.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState


def fence_off(ledger: Ledger) -> PipelineState | None:
    """Take every window and partition from the processes that work on them.

    Whoever held one can no longer announce or commit.

    Returns:
        The pipeline as it stands, None if the ledger does not know it.
    """
    with ledger.engine.begin() as connection:
        found = _find(connection, ledger.name)
        if found is None:
            return None
        for table, fence, freed in (
            (window, window.c.attempt, ("owner", "expires")),
            (partition, partition.c.claim_fence, ("claim_owner", "claim_expires")),
        ):
            values = {fence.name: fence + 1} | dict.fromkeys(freed)
            connection.execute(
                sa.update(table).where(table.c.pipeline == ledger.name).values(**values)
            )
        return found


def replace_rows(
    ledger: Ledger, restored: Ledger, before: PipelineState | None, first_fence: int
) -> None:
    """Put a pipeline's restored rows in place of those that a ledger has.

    Args:
        ledger: the one in use.
        restored: the one in memory.
        before: the pipeline as `fence_off` found it.
        first_fence: above every number and fence that the pipeline ever had.

    Raises:
        LedgerMoved: something was recorded since; nothing was changed (Transient).
    """
    with restored.engine.begin() as made, ledger.engine.begin() as connection:
        found = _find(connection, ledger.name)
        if found != before:
            raise LedgerMoved(
                pipeline=ledger.name, expected=_progress(before), found=_progress(found)
            )
        fences = {"next_number": first_fence, "first_fence": first_fence}
        made.execute(sa.update(pipeline).values(**fences))
        made.execute(sa.update(window).values(attempt=first_fence, owner=None, expires=None))
        made.execute(
            sa.update(partition).values(
                claim_fence=first_fence, claim_owner=None, claim_expires=None
            )
        )
        for table in reversed(metadata.sorted_tables):
            connection.execute(sa.delete(table).where(_mine(table, ledger.name)))
        for table in metadata.sorted_tables:
            copied = [dict(row) for row in made.execute(sa.select(table)).mappings()]
            if copied:
                connection.execute(sa.insert(table), copied)


def _find(connection: sa.Connection, name: str) -> PipelineState | None:
    query = sa.select(pipeline).where(pipeline.c.name == name).with_for_update()
    row = connection.execute(query).mappings().first()
    return None if row is None else rows.read_pipeline(row)


def _mine(table: sa.Table, name: str) -> sa.ColumnElement[bool]:
    return (table.c.name if table is pipeline else table.c.pipeline) == name


def _progress(state: PipelineState | None) -> str:
    return state.progress if state else "no such pipeline"
