"""Replace everything a ledger knows about one pipeline, in one transaction (design §4).

The restoration builds the rows in an in-memory ledger, a reset leaves none; other pipelines are not
touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import LedgerMoved, TargetOwned, TargetRegistered
from tidegate.ledger import rows
from tidegate.ledger.schema import metadata, partition, pipeline, window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.ledger.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState

_NUMBERS = 1 << 20
"""More than a ledger assigns before its rows are replaced again, so that no number of the former
rows that a process still holds equals one that is assigned afterwards."""


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


def replace_rows(ledger: Ledger, restored: Ledger, before: Fenced | None, newest: int) -> None:
    """Replace the rows of a pipeline in a ledger by restored ones.

    Args:
        ledger: the one in use.
        restored: the one in memory.
        before: the pipeline as `fence_off` found it.
        newest: the greatest number that any file has.

    Raises:
        LedgerMoved: something was recorded since; nothing was changed (Transient).
        TargetRegistered: another pipeline of this ledger has the target; nothing was changed.
    """
    with restored.engine.begin() as made, ledger.engine.begin() as connection:
        _check_unmoved(connection, ledger.name, before)
        target = made.scalar(sa.select(pipeline.c.target)) or ""
        owner = _registered_for(connection, target, ledger.name)
        if owner is not None:
            raise TargetRegistered(pipeline=ledger.name, target=target, owner=owner)
        fences = _fences(before, newest)
        first_fence = fences["first_fence"]
        made.execute(sa.update(pipeline).values(**fences))
        made.execute(sa.update(window).values(attempt=first_fence, owner=None, expires=None))
        made.execute(
            sa.update(partition).values(
                claim_fence=first_fence, claim_owner=None, claim_expires=None
            )
        )
        _delete_rows(connection, ledger.name)
        for table in metadata.sorted_tables:
            copied = [dict(row) for row in made.execute(sa.select(table)).mappings()]
            if copied:
                connection.execute(sa.insert(table), copied)


def clear_rows(ledger: Ledger, before: Fenced, identity: Mapping[str, str], target: str) -> None:
    """Forget everything about a pipeline but its registration; window numbers go on.

    Args:
        ledger: the one in use.
        before: the pipeline as `fence_off` found it.
        identity: the pipeline's identity from now on.
        target: its table root from now on.

    Raises:
        LedgerMoved: something was recorded since; nothing was changed (Transient).
        TargetOwned: another pipeline of this ledger has the target.
    """
    with ledger.engine.begin() as connection:
        _check_unmoved(connection, ledger.name, before)
        owner = _registered_for(connection, target, ledger.name)
        if owner is not None:
            raise TargetOwned(target=target, owner=owner, pipeline=ledger.name)
        _delete_rows(connection, ledger.name, kept=pipeline)
        connection.execute(
            sa.update(pipeline)
            .where(pipeline.c.name == ledger.name)
            .values(
                target=target,
                identity=dict(identity),
                source_identity=None,
                started=False,
                first_start=None,
                checkpoint=None,
                watermark=None,
                watermark_step=None,
                expected=None,
                **_fences(before, 0),
            )
        )


def remove_rows(ledger: Ledger, before: Fenced) -> None:
    """Forget a pipeline altogether.

    Raises:
        LedgerMoved: something was recorded since; nothing was changed (Transient).
    """
    with ledger.engine.begin() as connection:
        _check_unmoved(connection, ledger.name, before)
        _delete_rows(connection, ledger.name)


def _registered_for(connection: sa.Connection, target: str, name: str) -> str | None:
    """Return which other pipeline of the ledger has a target."""
    others = sa.select(pipeline.c.name).where(pipeline.c.target == target, pipeline.c.name != name)
    return connection.scalar(others)


def _delete_rows(connection: sa.Connection, name: str, kept: sa.Table | None = None) -> None:
    """Delete the rows of a pipeline, those that refer to others first."""
    for table in reversed(metadata.sorted_tables):
        if table is not kept:
            connection.execute(sa.delete(table).where(_mine(table, name)))


def _check_unmoved(connection: sa.Connection, name: str, before: Fenced | None) -> None:
    found = _find(connection, name)
    if found != before:
        raise LedgerMoved(
            pipeline=name,
            expected=_progress(before),
            found=f"{_progress(found)}, with {_changed(before, found)} since",
        )


def _fences(before: Fenced | None, newest: int) -> dict[str, int]:
    """Return numbers greater than each that the pipeline ever had."""
    if before is not None:
        newest = max(newest, before.state.next_number, before.state.first_fence)
    first = (newest // _NUMBERS + 1) * _NUMBERS
    return {"next_number": first, "first_fence": first}


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
