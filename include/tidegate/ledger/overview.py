"""The state of all pipelines of a ledger at a glance."""

from __future__ import annotations

from collections import Counter, defaultdict

import sqlalchemy as sa

from tidegate.ledger import rows
from tidegate.ledger.connect import reading
from tidegate.ledger.schema import partition, pipeline, window
from tidegate.model.ledger_rows import state_name
from tidegate.model.report import PipelineOverview


def read_overview(engine: sa.Engine) -> tuple[PipelineOverview, ...]:
    """Return the state of every pipeline of the ledger, by name.

    Two queries, however many pipelines there are.

    Raises:
        LedgerUnreachable: the database does not answer (Transient).
    """
    is_open = sa.case((window.c.state == "open", window.c.sequence))
    loads = (
        sa.select(
            window.c.pipeline,
            sa.func.max(is_open).label("open_window"),
            sa.func.max(window.c.sealed_at).label("last_load"),
        )
        .group_by(window.c.pipeline)
        .subquery()
    )
    known = (
        sa.select(pipeline, loads.c.open_window, loads.c.last_load)
        .outerjoin(loads, loads.c.pipeline == pipeline.c.name)
        .order_by(pipeline.c.name)
    )
    is_published = partition.c.revision > 0
    kinds = (partition.c.pipeline, partition.c.pending, is_published)
    counts = sa.select(*kinds, sa.func.count()).group_by(*kinds)
    with reading(engine) as connection:
        found = connection.execute(known).mappings().all()
        states: dict[str, Counter[str]] = defaultdict(Counter)
        for name, pending, published, count in connection.execute(counts):
            states[name][state_name(pending, published)] += count
    return tuple(
        PipelineOverview(
            pipeline=rows.read_pipeline(row),
            partitions=states[row["name"]],
            open_window=row["open_window"],
            last_load=row["last_load"],
        )
        for row in found
    )
