"""Numbers that order the records of a pipeline: announces, commits, decisions (design §4).

A number is reserved before the file with it is written, and recorded in the transaction that the
file is for. The order of the numbers is therefore the order of events, whatever the clocks of the
hosts. Each window and partition stores the last number that was reserved for it: a file with a
greater number comes from another ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.errors import LedgerMoved, NumberPassed
from tidegate.ledger.schema import partition, pipeline, window

if TYPE_CHECKING:
    from tidegate.ledger import rows


# Made once: to put a query together takes longer than to carry it out.
_LOCKED = sa.select(pipeline).where(pipeline.c.name == sa.bindparam("name")).with_for_update()


def lock(connection: sa.Connection, name: str) -> rows.Row:
    """Lock the pipeline's row, before any window's or partition's (SQLite locks all).

    Every transaction that records a number takes these locks; in different orders, two of them
    could wait for each other.

    Raises:
        LedgerMoved: the ledger was replaced by one that does not know the pipeline (Transient).
    """
    row = connection.execute(_LOCKED, {"name": name}).mappings().first()
    if row is None:
        raise LedgerMoved(pipeline=name, expected="the pipeline", found="no such pipeline")
    return row


def reserve_for_window(connection: sa.Connection, name: str, sequence: int) -> int:
    """Reserve the next number for an announce of a window, inside the caller's transaction.

    Raises:
        LedgerMoved: as `lock`.
    """
    return _reserve(connection, window, _of_window(name, sequence), name)


def reserve_for_partition(connection: sa.Connection, name: str, path: str) -> int:
    """Reserve the next number for a record of a partition, inside the caller's transaction.

    Raises:
        LedgerMoved: as `lock`.
    """
    return _reserve(connection, partition, _of_partition(name, path), name)


def record_for_window(connection: sa.Connection, name: str, sequence: int, number: int) -> None:
    """Record a number for a window inside the caller's transaction.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    mine = _of_window(name, sequence)
    _record(connection, window, mine, number, name, f"window {sequence}")


def record_for_partition(connection: sa.Connection, name: str, path: str, number: int) -> None:
    """Record a number for a partition inside the caller's transaction.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    mine = _of_partition(name, path)
    _record(connection, partition, mine, number, name, path)


def _of_window(name: str, sequence: int) -> tuple[sa.ColumnElement[bool], ...]:
    return (window.c.pipeline == name, window.c.sequence == sequence)


def _of_partition(name: str, path: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (partition.c.pipeline == name, partition.c.partition == path)


def _reserve(
    connection: sa.Connection, table: sa.Table, mine: tuple[sa.ColumnElement[bool], ...], name: str
) -> int:
    number = int(lock(connection, name)["next_number"])
    connection.execute(
        sa.update(pipeline).where(pipeline.c.name == name).values(next_number=number + 1)
    )
    # A ledger from a backup gives the same numbers again, without knowing for whom it gave them.
    connection.execute(sa.update(table).where(*mine).values(reserved=number))
    return number


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
    # A ledger from a backup may receive numbers that were reserved after the backup.
    connection.execute(
        sa.update(pipeline)
        .where(pipeline.c.name == name, pipeline.c.next_number <= number)
        .values(next_number=number + 1)
    )
