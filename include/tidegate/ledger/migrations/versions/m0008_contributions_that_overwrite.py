"""Contributions that overwrite their partition, and the time that orders history."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns; so far every pipeline appended."""
    op.add_column(
        "contribution",
        sa.Column("overwrites", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("contribution", sa.Column("as_of", sa.String(27), nullable=True))
