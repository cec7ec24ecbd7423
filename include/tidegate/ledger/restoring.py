"""Replace everything a ledger knows about one pipeline, in one transaction (design §4).

The restoration builds the rows in an in-memory ledger; other pipelines are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import LedgerMoved
from tidegate.ledger import rows
from tidegate.ledger.schema import metadata, partition, pipeline, window

if TYPE_CHECKING:
    from tidegate.ledger.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState


@dataclass(frozen=True)
class Fenced:
    """The state of a pipeline after everybody was fenced off."""

    state: PipelineState
    marks: tuple[tuple[str, int, int], ...]
    """The fence and number of each window and partition: taking one over raises the fence;
    recording something without taking it over, such as a person's decision, raises the number."""


def fence_off(ledger: Ledger) -> Fenced | None:
    """Take every window and partition over from the processes that work on them.

    Their former holders can no longer announce or commit.

    Returns:
        The state of the pipeline; None if the ledger does not know it.
    """
    with ledger.engine.begin() as connection:
        if _find(connection, ledger.name) is None:
            return None
        for table, fence, freed in (
            (window, window.c.attempt, ("owner", "expires")),
            (partition, partition.c.claim_fence, ("claim_owner", "claim_expires")),
        ):
            values = {fence.name: fence + 1} | dict.fromkeys(freed)
            connection.execute(
                sa.update(table).where(table.c.pipeline == ledger.name).values(**values)
            )
        return _find(connection, ledger.name)


def replace_rows(ledger: Ledger, restored: Ledger, before: Fenced | None, first_fence: int) -> None:
    """Replace the rows of a pipeline in a ledger by restored ones.

    Args:
        ledger: the one in use.
        restored: the one in memory.
        before: the pipeline as `fence_off` found it.
        first_fence: greater than every number and fence that the pipeline ever had.

    Raises:
        LedgerMoved: something was recorded since; nothing was changed (Transient).
    """
    with restored.engine.begin() as made, ledger.engine.begin() as connection:
        found = _find(connection, ledger.name)
        if found != before:
            raise LedgerMoved(
                pipeline=ledger.name,
                expected=_progress(before),
                found=f"{_progress(found)}, with {_changed(before, found)} since",
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


def _find(connection: sa.Connection, name: str) -> Fenced | None:
    query = sa.select(pipeline).where(pipeline.c.name == name).with_for_update()
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    windows = sa.select(window.c.sequence, window.c.attempt, window.c.number).where(
        window.c.pipeline == name
    )
    partitions = sa.select(
        partition.c.partition, partition.c.claim_fence, partition.c.number
    ).where(partition.c.pipeline == name)
    marks = (
        *((f"window {key}", fence, number) for key, fence, number in connection.execute(windows)),
        *((key, fence, number) for key, fence, number in connection.execute(partitions)),
    )
    return Fenced(rows.read_pipeline(row), tuple(sorted(marks)))


def _mine(table: sa.Table, name: str) -> sa.ColumnElement[bool]:
    return (table.c.name if table is pipeline else table.c.pipeline) == name


def _changed(before: Fenced | None, found: Fenced | None) -> str:
    """Return the first window or partition that was worked on, or decided on."""
    marks = [set(item.marks) if item else set[tuple[str, int, int]]() for item in (before, found)]
    changed = sorted(key for key, *_mark in marks[0] ^ marks[1])
    return f"a change of {changed[0]}" if changed else "a step"


def _progress(found: Fenced | None) -> str:
    return found.state.progress if found else "no such pipeline"
