"""The seven tables of design §4."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "pipeline",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("ledger_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("source_identity", sa.Text(), nullable=True),
        sa.Column("started", sa.Boolean(), nullable=False),
        sa.Column("first_start", sa.Text(), nullable=True),
        sa.Column("checkpoint", sa.Text(), nullable=True),
        sa.Column("watermark", sa.String(27), nullable=True),
        sa.Column("watermark_step", sa.Text(), nullable=True),
        sa.Column("next_sequence", sa.Integer(), nullable=False),
        sa.Column("registered_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("target"),
    )
    op.create_table(
        "partition",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("values", sa.Text(), nullable=False),
        sa.Column("start", sa.String(27), nullable=True),
        sa.Column("end", sa.String(27), nullable=True),
        sa.Column("first_seen", sa.String(27), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("pending", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("claim_owner", sa.Text(), nullable=True),
        sa.Column("claim_fence", sa.Integer(), nullable=False),
        sa.Column("claim_expires", sa.String(27), nullable=True),
        sa.CheckConstraint("pending IN ('none', 'pending', 'held')", name="partition_pending"),
        sa.ForeignKeyConstraint(
            ["pipeline"],
            ["pipeline.name"],
        ),
        sa.PrimaryKeyConstraint("pipeline", "partition"),
    )
    op.create_table(
        "window",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("range", sa.Text(), nullable=False),
        sa.Column("end_time", sa.String(27), nullable=False),
        sa.Column("interval_start", sa.String(27), nullable=True),
        sa.Column("interval_end", sa.String(27), nullable=True),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("expires", sa.String(27), nullable=True),
        sa.Column("plan_digest", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("taken_at", sa.String(27), nullable=False),
        sa.Column("sealed_at", sa.String(27), nullable=True),
        sa.CheckConstraint("kind IN ('load', 'history', 'rebuild')", name="window_kind"),
        sa.CheckConstraint("state IN ('open', 'sealed')", name="window_state"),
        sa.ForeignKeyConstraint(
            ["pipeline"],
            ["pipeline.name"],
        ),
        sa.PrimaryKeyConstraint("pipeline", "sequence"),
    )
    op.create_index(
        "one_open_window",
        "window",
        ["pipeline"],
        unique=True,
        sqlite_where=sa.column("state") == "open",
        postgresql_where=sa.column("state") == "open",
    )
    op.create_table(
        "contribution",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("window", sa.Integer(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("plan_digest", sa.Text(), nullable=False),
        sa.Column("messages_uri", sa.Text(), nullable=False),
        sa.Column("messages", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("event_times", sa.Text(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("held_rule", sa.Text(), nullable=True),
        sa.Column("announced_at", sa.String(27), nullable=False),
        sa.ForeignKeyConstraint(
            ["pipeline", "window"],
            ["window.pipeline", "window.sequence"],
        ),
        sa.PrimaryKeyConstraint("pipeline", "window", "partition"),
    )
    op.create_index(
        "contribution_partition", "contribution", ["pipeline", "partition"], unique=False
    )
    op.create_table(
        "plan",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("window", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("totals", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("planned_at", sa.String(27), nullable=False),
        sa.CheckConstraint("state IN ('planned', 'staged')", name="plan_state"),
        sa.ForeignKeyConstraint(
            ["pipeline", "window"],
            ["window.pipeline", "window.sequence"],
        ),
        sa.PrimaryKeyConstraint("pipeline", "window", "digest"),
    )
    op.create_table(
        "publication",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("base_revision", sa.Integer(), nullable=False),
        sa.Column("adds", sa.Text(), nullable=False),
        sa.Column("removes", sa.Text(), nullable=False),
        sa.Column("contributions", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("approval", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("proposed_at", sa.String(27), nullable=False),
        sa.CheckConstraint(
            "state IN ('proposed', 'prepared', 'moved', 'marked', 'recorded', 'dropped')",
            name="publication_state",
        ),
        sa.ForeignKeyConstraint(
            ["pipeline", "partition"],
            ["partition.pipeline", "partition.partition"],
        ),
        sa.PrimaryKeyConstraint("pipeline", "partition", "digest"),
    )
    op.create_index(
        "one_open_publication",
        "publication",
        ["pipeline", "partition"],
        unique=True,
        sqlite_where=sa.column("state").in_(["prepared", "moved", "marked"]),
        postgresql_where=sa.column("state").in_(["prepared", "moved", "marked"]),
    )
    op.create_table(
        "revision",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("contributions", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("watermark", sa.String(27), nullable=True),
        sa.Column("source_range", sa.Text(), nullable=False),
        sa.Column("commit_plan", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("committed_at", sa.String(27), nullable=False),
        sa.ForeignKeyConstraint(
            ["pipeline", "partition"],
            ["partition.pipeline", "partition.partition"],
        ),
        sa.PrimaryKeyConstraint("pipeline", "partition", "revision"),
    )
