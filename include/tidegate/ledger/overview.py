"""The state of all pipelines of a ledger at a glance."""

from __future__ import annotations

from collections import Counter, defaultdict

import sqlalchemy as sa

from tidegate.ledger import rows
from tidegate.ledger.connect import reading
from tidegate.ledger.schema import contribution, partition, pipeline, revision, window
from tidegate.model.aside import Aside
from tidegate.model.ledger_rows import state_name
from tidegate.model.plan import WindowKind
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
    waiting = sa.select(
        partition.c.pipeline,
        partition.c.pending,
        is_published.label("published"),
        sa.case((is_published, _has_new_window()), else_=sa.false()).label("late"),
        partition.c.alarm.is_not(None).label("alarmed"),
    ).subquery()
    kinds = (
        waiting.c.pipeline,
        waiting.c.pending,
        waiting.c.published,
        waiting.c.late,
        waiting.c.alarmed,
    )
    counts = sa.select(*kinds, sa.func.count()).group_by(*kinds)
    with reading(engine) as connection:
        found = connection.execute(known).mappings().all()
        states: dict[str, Counter[str]] = defaultdict(Counter)
        for name, pending, published, late, alarmed, count in connection.execute(counts):
            state = state_name(pending, published, is_late=late, is_missing=alarmed)
            states[name][state] += count
    return tuple(
        PipelineOverview(
            pipeline=rows.read_pipeline(row),
            partitions=states[row["name"]],
            open_window=row["open_window"],
            last_load=row["last_load"],
        )
        for row in found
    )


def _has_new_window() -> sa.ColumnElement[bool]:
    """Return whether a window of new rows waits for a partition's next revision."""
    # The keys of canonical JSON, in which digests have no quotes inside.
    key = sa.literal('%"') + sa.cast(contribution.c.window, sa.Text) + sa.literal('":%')
    replacing = [kind.value for kind in WindowKind if kind.replaces]
    settled = [why.value for why in Aside if why.is_settled]
    return (
        sa.select(contribution.c.window)
        .join(
            revision,
            sa.and_(
                revision.c.pipeline == contribution.c.pipeline,
                revision.c.partition == contribution.c.partition,
            ),
        )
        .where(
            contribution.c.pipeline == partition.c.pipeline,
            contribution.c.partition == partition.c.partition,
            partition.c.pending == "pending",
            revision.c.revision == partition.c.revision,
            contribution.c.kind.not_in(replacing),
            sa.or_(contribution.c.aside.is_(None), contribution.c.aside.not_in(settled)),
            sa.cast(revision.c.contributions, sa.Text).not_like(key),
        )
        .correlate(partition)
        .exists()
    )
