"""Windows that replace the partitions that changed: `replace`."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# Given in full: SQLite rebuilds the table, and reflecting it would lose its checks.
_WINDOW = sa.Table(
    "window",
    sa.MetaData(),
    sa.Column("pipeline", sa.Text(), sa.ForeignKey("pipeline.name"), primary_key=True),
    sa.Column("sequence", sa.Integer(), primary_key=True),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("range", sa.Text(), nullable=False),
    sa.Column("end_time", sa.String(27), nullable=False),
    sa.Column("interval_start", sa.String(27), nullable=True),
    sa.Column("interval_end", sa.String(27), nullable=True),
    sa.Column("partitions", sa.Text(), nullable=False),
    sa.Column("run", sa.Text(), nullable=False),
    sa.Column("state", sa.Text(), nullable=False),
    sa.Column("attempt", sa.BigInteger(), nullable=False),
    sa.Column("owner", sa.Text(), nullable=True),
    sa.Column("expires", sa.String(27), nullable=True),
    sa.Column("plan_digest", sa.Text(), nullable=True),
    sa.Column("summary", sa.Text(), nullable=True),
    sa.Column("taken_at", sa.String(27), nullable=False),
    sa.Column("sealed_at", sa.String(27), nullable=True),
    sa.Column("number", sa.BigInteger(), nullable=False, server_default="0"),
    sa.Column("reserved", sa.BigInteger(), nullable=False, server_default="0"),
    sa.CheckConstraint("state IN ('open', 'sealed')", name="window_state"),
    sa.CheckConstraint(
        "kind IN ('load', 'history', 'rebuild', 'reload', 'restart')", name="window_kind"
    ),
)
_OPEN = _WINDOW.c.state == "open"
sa.Index(
    "one_open_window", _WINDOW.c.pipeline, unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN
)
_KINDS = "kind IN ('load', 'history', 'rebuild', 'reload', 'restart', 'replace')"


def upgrade() -> None:
    """Allow the new kind of windows."""
    with op.batch_alter_table("window", copy_from=_WINDOW) as table:
        table.drop_constraint("window_kind", type_="check")
        table.create_check_constraint("window_kind", _KINDS)
