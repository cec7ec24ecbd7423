"""Contributions can be set aside: late rows that do not count, and revisions that were undone."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the columns; everything that was announced before counts."""
    op.add_column("contribution", sa.Column("aside", sa.Text(), nullable=True))
    op.add_column("contribution", sa.Column("counts_as", sa.Text(), nullable=True))
    op.add_column("publication", sa.Column("undone", sa.Text(), nullable=True))
