"""Partitions that a calendar expects: how far it was read, and the alarms that were raised."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the columns; no calendar was read before."""
    op.add_column("pipeline", sa.Column("expected", sa.Text(), nullable=True))
    op.add_column("partition", sa.Column("alarm", sa.Text(), nullable=True))
