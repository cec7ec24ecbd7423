"""Numbers that order what is recorded of a pipeline: announces, commits, decisions (design §4).

A number is reserved before the file that carries it is written, and recorded in the transaction
that the file stands for. Files in the order of their numbers therefore tell what happened in the
order in which it happened, whatever the clocks of the hosts said.
"""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.errors import NumberPassed
from tidegate.ledger.schema import partition, pipeline, window


def lock(connection: sa.Connection, name: str) -> None:
    """Lock the pipeline's row, before any partition's.

    Every transaction that records a number takes both; in two orders they would wait for each
    other.
    """
    query = sa.select(pipeline.c.name).where(pipeline.c.name == name).with_for_update()
    connection.execute(query)


def reserve(connection: sa.Connection, name: str) -> int:
    """Reserve the next number inside the caller's transaction."""
    mine = pipeline.c.name == name
    connection.execute(
        sa.update(pipeline).where(mine).values(next_number=pipeline.c.next_number + 1)
    )
    return int(connection.scalar(sa.select(pipeline.c.next_number).where(mine)) or 0) - 1


def record_for_window(connection: sa.Connection, name: str, sequence: int, number: int) -> None:
    """Record a number for a window inside the caller's transaction.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    mine = (window.c.pipeline == name, window.c.sequence == sequence)
    _record(connection, window, mine, number, name, f"window {sequence}")


def record_for_partition(connection: sa.Connection, name: str, path: str, number: int) -> None:
    """Record a number for a partition inside the caller's transaction.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    mine = (partition.c.pipeline == name, partition.c.partition == path)
    _record(connection, partition, mine, number, name, path)


def _record(
    connection: sa.Connection,
    table: sa.Table,
    mine: tuple[sa.ColumnElement[bool], ...],
    number: int,
    name: str,
    subject: str,
) -> None:
    found = connection.scalar(sa.select(table.c.number).where(*mine)) or 0
    if found > number:
        raise NumberPassed(pipeline=name, subject=subject, reserved=number, found=found)
    connection.execute(sa.update(table).where(*mine).values(number=number))
    # A ledger from a backup may be told what was reserved after it was saved.
    connection.execute(
        sa.update(pipeline)
        .where(pipeline.c.name == name, pipeline.c.next_number <= number)
        .values(next_number=number + 1)
    )
