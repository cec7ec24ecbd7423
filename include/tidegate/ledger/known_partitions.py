"""Read all that the ledger knows of one partition, or of every one, in a few queries."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.ledger import rows
from tidegate.ledger.connect import reading
from tidegate.ledger.lapsing import is_approved, lapse
from tidegate.ledger.schema import BEGUN, contribution, partition, publication, revision
from tidegate.ledger.setting_aside import CONTRIBUTIONS
from tidegate.model.ledger_rows import KnownPartition
from tidegate.model.publication import PublicationState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.partition import Partition

_OPEN = (PublicationState.PROPOSED.value, *BEGUN)


def read_known_partitions(
    engine: sa.Engine, name: str, *, waiting_only: bool = False
) -> tuple[KnownPartition, ...]:
    """Return every partition in order of partition time, then path (PC-T05).

    Those with nothing pending are left out on request: their number grows with the history.
    The number of queries does not depend on how many there are, but for two more for each
    publication that was approved and is not committed yet.
    """
    with reading(engine) as connection:
        # Publications before partitions, so that a commit that is recorded in between is found as a
        # revision; contributions before them, because an announce adds both at once.
        publications = _by_partition(connection, _open_publications(name))
        approved = {
            row["partition"]
            for found in publications.values()
            for row in found
            if row["state"] not in BEGUN
            and is_approved(row)
            and lapse(connection, row, as_shown=True) is None
        }
        brought = _all(contribution, name).order_by(contribution.c.window)
        newest, known = _newest_revisions(name), _all(partition, name)
        if waiting_only:
            waits = partition.c.pipeline == name, partition.c.pending != "none"
            waiting = sa.select(partition.c.partition).where(*waits)
            brought = brought.where(contribution.c.partition.in_(waiting))
            newest = newest.where(revision.c.partition.in_(waiting))
            known = known.where(*waits)
        contributions = _by_partition(connection, brought)
        revisions = _by_partition(connection, newest)
        states = connection.execute(
            known.order_by(partition.c.start.is_(None), partition.c.start, partition.c.partition)
        ).mappings()
        return tuple(
            _read(
                row,
                publications[row["partition"]],
                contributions[row["partition"]],
                revisions[row["partition"]],
                may_be_committed=row["partition"] in approved,
            )
            for row in states
        )


def read_known_partition(engine: sa.Engine, name: str, target: Partition) -> KnownPartition | None:
    """Return one partition as `read_known_partitions` does; None if no window ever touched it."""
    mine = {"pipeline": name, "partition": target.path}
    with reading(engine) as connection:
        # In the order of `read_known_partitions`, and for its reasons.
        publications = connection.execute(_ITS_PUBLICATIONS, mine).mappings().all()
        brought = connection.execute(CONTRIBUTIONS, mine).mappings().all()
        newest = connection.execute(_ITS_NEWEST, mine).mappings().all()
        row = connection.execute(_ITS_STATE, mine).mappings().first()
        may_be_committed = any(
            item["state"] not in BEGUN
            and is_approved(item)
            and lapse(connection, item, as_shown=True) is None
            for item in publications
        )
    if row is None:
        return None
    return _read(row, publications, brought, newest, may_be_committed=may_be_committed)


def _read(
    row: rows.Row,
    publications: Sequence[rows.Row],
    contributions: Sequence[rows.Row],
    revisions: Sequence[rows.Row],
    *,
    may_be_committed: bool,
) -> KnownPartition:
    state = rows.read_partition_state(row)
    target = state.partition
    entries = [rows.read_publication(item, target) for item in publications]
    proposed = [item for item in entries if item.state is PublicationState.PROPOSED]
    begun = [item for item in entries if item.state is not PublicationState.PROPOSED]
    return KnownPartition(
        state=state,
        contributions=tuple(rows.read_contribution(item, target) for item in contributions),
        newest=rows.read_revision(revisions[0], target) if revisions else None,
        begun=begun[0] if begun else None,
        proposed=proposed[0] if proposed else None,
        approved=proposed[0] if proposed and may_be_committed else None,
    )


def _by_partition(
    connection: sa.Connection, query: sa.Select[Any]
) -> defaultdict[str, list[rows.Row]]:
    found = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row["partition"]].append(row)
    return found


def _all(table: sa.Table, name: str) -> sa.Select[Any]:
    return sa.select(table).where(table.c.pipeline == name)


def _open_publications(name: str) -> sa.Select[Any]:
    return _all(publication, name).where(publication.c.state.in_(_OPEN))


def _its(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[key] == sa.bindparam(key) for key in ("pipeline", "partition"))


# Made once: to put a query together takes longer than to carry it out.
_ITS_PUBLICATIONS = sa.select(publication).where(*_its(publication), publication.c.state.in_(_OPEN))
_ITS_NEWEST = (
    rows.select_revisions(sa.bindparam("pipeline"))
    .where(*_its(revision))
    .order_by(revision.c.revision.desc())
    .limit(1)
)
_ITS_STATE = sa.select(partition).where(*_its(partition))


def _newest_revisions(name: str) -> sa.Select[Any]:
    newest = (
        sa.select(revision.c.partition, sa.func.max(revision.c.revision).label("newest"))
        .where(revision.c.pipeline == name)
        .group_by(revision.c.partition)
        .subquery()
    )
    return rows.select_revisions(name).join(
        newest,
        sa.and_(newest.c.partition == revision.c.partition, newest.c.newest == revision.c.revision),
    )
