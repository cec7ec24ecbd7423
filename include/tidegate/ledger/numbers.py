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
_NEXT = sa.update(pipeline).where(pipeline.c.name == sa.bindparam("of_pipeline"))
_OF_WINDOW = (
    window.c.pipeline == sa.bindparam("of_pipeline"),
    window.c.sequence == sa.bindparam("of_window"),
)
_OF_PARTITION = (
    partition.c.pipeline == sa.bindparam("of_pipeline"),
    partition.c.partition == sa.bindparam("of_partition"),
)
_CHANGE_WINDOW = sa.update(window).where(*_OF_WINDOW)
_CHANGE_PARTITION = sa.update(partition).where(*_OF_PARTITION)
_NUMBER_OF_WINDOW = sa.select(window.c.number).where(*_OF_WINDOW)
_NUMBER_OF_PARTITION = sa.select(partition.c.number).where(*_OF_PARTITION)


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


def reserve_for_window(connection: sa.Connection, locked: rows.Row, sequence: int) -> int:
    """Reserve the next number for an announce of a window, inside the caller's transaction.

    Args:
        connection: of the transaction.
        locked: the pipeline's row, as `lock` returned it.
        sequence: the window's.
    """
    return _reserve(connection, locked, _CHANGE_WINDOW, {"of_window": sequence})


def reserve_for_partition(
    connection: sa.Connection, locked: rows.Row, path: str, count: int = 1
) -> int:
    """Reserve the next numbers for records of a partition, inside the caller's transaction.

    Args:
        connection: of the transaction.
        locked: the pipeline's row, as `lock` returned it.
        path: the partition's.
        count: how many follow one another.

    Returns:
        The first of them.
    """
    return _reserve(connection, locked, _CHANGE_PARTITION, {"of_partition": path}, count)


def record_for_window(connection: sa.Connection, name: str, sequence: int, number: int) -> None:
    """Record a number for a window inside the caller's transaction.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    mine = {"of_pipeline": name, "of_window": sequence}
    found = connection.scalar(_NUMBER_OF_WINDOW, mine) or 0
    check_newest(name, f"window {sequence}", found, number)
    connection.execute(_CHANGE_WINDOW, {**mine, "number": number})
    _pass(connection, name, number)


def record_for_partition(connection: sa.Connection, name: str, path: str, number: int) -> None:
    """Record a number for a partition inside the caller's transaction.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    mine = {"of_pipeline": name, "of_partition": path}
    found = connection.scalar(_NUMBER_OF_PARTITION, mine) or 0
    check_newest(name, path, found, number)
    connection.execute(_CHANGE_PARTITION, {**mine, "number": number})
    _pass(connection, name, number)


def check_newest(name: str, subject: str, found: int, number: int) -> None:
    """Check that a number may be recorded for a window or partition.

    Args:
        name: the pipeline's.
        subject: the window or partition, as it is named to people.
        found: the number that was recorded for it last, in the caller's transaction.
        number: that is to be recorded.

    Raises:
        NumberPassed: a greater one was recorded (Transient).
    """
    if found > number:
        raise NumberPassed(pipeline=name, subject=subject, reserved=number, found=found)


def pass_over(connection: sa.Connection, locked: rows.Row, number: int) -> None:
    """Let the next number be greater than one that is recorded, inside the caller's transaction.

    Args:
        connection: of the transaction.
        locked: the pipeline's row, as `lock` returned it.
        number: that is recorded.
    """
    # A ledger from a backup may receive numbers that were reserved after the backup.
    if locked["next_number"] <= number:
        _pass(connection, locked["name"], number)


def _pass(connection: sa.Connection, name: str, number: int) -> None:
    connection.execute(
        _NEXT.where(pipeline.c.next_number <= number),
        {"of_pipeline": name, "next_number": number + 1},
    )


def _reserve(
    connection: sa.Connection,
    locked: rows.Row,
    change: sa.Update,
    its: dict[str, object],
    count: int = 1,
) -> int:
    name, number = locked["name"], int(locked["next_number"])
    connection.execute(_NEXT, {"of_pipeline": name, "next_number": number + count})
    # A ledger from a backup gives the same numbers again, without knowing for whom it gave them.
    last = number + count - 1
    connection.execute(change, {"of_pipeline": name, **its, "reserved": last})
    return number
