"""Contributions count the rows that hold their partition, by row rule."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; of contributions announced before, only the rules are known."""
    op.add_column("contribution", sa.Column("held_rows", sa.Text(), nullable=True))
