"""The seven tables of the ledger (design §4)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidegate.model.wire import canonical, instant_text, parse_instant_text


class UtcText(sa.types.TypeDecorator[datetime]):
    """An aware time as fixed-width UTC text, with the same order in SQLite and PostgreSQL."""

    impl = sa.String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: sa.Dialect) -> str | None:
        """Return the time as text."""
        return None if value is None else instant_text(value)

    def process_result_value(self, value: str | None, _dialect: sa.Dialect) -> datetime | None:
        """Read the time back."""
        return None if value is None else parse_instant_text(value)


class CanonicalJson(sa.types.TypeDecorator[Any]):
    """JSON as canonical text, so that equal values compare equal in SQL."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: sa.Dialect) -> str | None:
        """Return the value as text."""
        return None if value is None else canonical(value)

    def process_result_value(self, value: str | None, _dialect: sa.Dialect) -> Any:
        """Read the value back."""
        return None if value is None else json.loads(value)


metadata = sa.MetaData()

pipeline = sa.Table(
    "pipeline",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("ledger_id", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False, unique=True),
    sa.Column("identity", CanonicalJson, nullable=False),
    sa.Column("source_identity", sa.Text),
    sa.Column("started", sa.Boolean, nullable=False, default=False),
    sa.Column("first_start", CanonicalJson),
    sa.Column("checkpoint", CanonicalJson),
    sa.Column("watermark", UtcText),
    sa.Column("watermark_step", CanonicalJson),
    sa.Column("next_sequence", sa.Integer, nullable=False),
    sa.Column("next_number", sa.BigInteger, nullable=False),
    sa.Column("first_fence", sa.BigInteger, nullable=False),
    sa.Column("registered_at", UtcText, nullable=False),
    sa.Column("expected", CanonicalJson),
)

window = sa.Table(
    "window",
    metadata,
    sa.Column("pipeline", sa.Text, sa.ForeignKey("pipeline.name"), primary_key=True),
    sa.Column("sequence", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("range", CanonicalJson, nullable=False),
    sa.Column("end_time", UtcText, nullable=False),
    sa.Column("interval_start", UtcText),
    sa.Column("interval_end", UtcText),
    sa.Column("partitions", CanonicalJson, nullable=False),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempt", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.Text),
    sa.Column("expires", UtcText),
    sa.Column("plan_digest", sa.Text),
    sa.Column("summary", CanonicalJson),
    sa.Column("taken_at", UtcText, nullable=False),
    sa.Column("sealed_at", UtcText),
    sa.Column("number", sa.BigInteger, nullable=False, default=0),
    sa.Column("reserved", sa.BigInteger, nullable=False, default=0),
    sa.CheckConstraint("state IN ('open', 'sealed')", name="window_state"),
    sa.CheckConstraint(
        "kind IN ('load', 'history', 'rebuild', 'reload', 'restart', 'replace')",
        name="window_kind",
    ),
)
# At most one window per pipeline is open (design §4): the database refuses a second one.
sa.Index(
    "one_open_window",
    window.c.pipeline,
    unique=True,
    sqlite_where=window.c.state == "open",
    postgresql_where=window.c.state == "open",
)

plan = sa.Table(
    "plan",
    metadata,
    sa.Column("pipeline", sa.Text, primary_key=True),
    sa.Column("window", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("uri", sa.Text, nullable=False),
    sa.Column("fingerprint", CanonicalJson, nullable=False),
    sa.Column("totals", CanonicalJson, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("planned_at", UtcText, nullable=False),
    sa.ForeignKeyConstraint(["pipeline", "window"], ["window.pipeline", "window.sequence"]),
    sa.CheckConstraint("state IN ('planned', 'staged')", name="plan_state"),
)

contribution = sa.Table(
    "contribution",
    metadata,
    sa.Column("pipeline", sa.Text, primary_key=True),
    sa.Column("window", sa.Integer, primary_key=True),
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("plan_digest", sa.Text, nullable=False),
    sa.Column("messages_uri", sa.Text, nullable=False),
    sa.Column("messages", CanonicalJson, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("event_times", CanonicalJson, nullable=False),
    sa.Column("late", sa.Boolean, nullable=False),
    sa.Column("held_rule", sa.Text),
    sa.Column("held_rows", CanonicalJson),
    sa.Column("overwrites", sa.Boolean, nullable=False, default=False),
    sa.Column("as_of", UtcText),
    sa.Column("aside", sa.Text),
    sa.Column("counts_as", sa.Text),
    sa.Column("announced_at", UtcText, nullable=False),
    sa.ForeignKeyConstraint(["pipeline", "window"], ["window.pipeline", "window.sequence"]),
    sa.Index("contribution_partition", "pipeline", "partition"),
)

partition = sa.Table(
    "partition",
    metadata,
    sa.Column("pipeline", sa.Text, sa.ForeignKey("pipeline.name"), primary_key=True),
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("values", CanonicalJson, nullable=False),
    sa.Column("start", UtcText),
    sa.Column("end", UtcText),
    sa.Column("first_seen", UtcText),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("pending", sa.Text, nullable=False),
    sa.Column("why", CanonicalJson),
    sa.Column("claim_owner", sa.Text),
    sa.Column("claim_fence", sa.BigInteger, nullable=False),
    sa.Column("claim_expires", UtcText),
    sa.Column("number", sa.BigInteger, nullable=False, default=0),
    sa.Column("reserved", sa.BigInteger, nullable=False, default=0),
    sa.Column("alarm", CanonicalJson),
    sa.CheckConstraint("pending IN ('none', 'pending', 'held')", name="partition_pending"),
)

BEGUN = ("prepared", "moved", "marked")
"""States of a publication whose commit has begun but not ended."""

publication = sa.Table(
    "publication",
    metadata,
    sa.Column("pipeline", sa.Text, primary_key=True),
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("base_revision", sa.Integer, nullable=False),
    sa.Column("adds", CanonicalJson, nullable=False),
    sa.Column("removes", CanonicalJson, nullable=False),
    sa.Column("contributions", CanonicalJson, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("verdict", CanonicalJson),
    sa.Column("approval", CanonicalJson),
    sa.Column("override", CanonicalJson),
    sa.Column("undone", CanonicalJson),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("commit_plan", sa.Text),
    sa.Column("proposed_at", UtcText, nullable=False),
    sa.ForeignKeyConstraint(
        ["pipeline", "partition"], ["partition.pipeline", "partition.partition"]
    ),
    sa.CheckConstraint(
        "state IN ('proposed', 'prepared', 'moved', 'marked', 'recorded', 'dropped')",
        name="publication_state",
    ),
)
sa.Index(
    "one_open_publication",
    publication.c.pipeline,
    publication.c.partition,
    unique=True,
    sqlite_where=publication.c.state.in_(BEGUN),
    postgresql_where=publication.c.state.in_(BEGUN),
)

revision = sa.Table(
    "revision",
    metadata,
    sa.Column("pipeline", sa.Text, primary_key=True),
    sa.Column("partition", sa.Text, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("contributions", CanonicalJson, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("watermark", UtcText),
    sa.Column("source_range", CanonicalJson, nullable=False),
    sa.Column("commit_plan", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("committed_at", UtcText, nullable=False),
    sa.Column("override", CanonicalJson),
    sa.ForeignKeyConstraint(
        ["pipeline", "partition"], ["partition.pipeline", "partition.partition"]
    ),
)
