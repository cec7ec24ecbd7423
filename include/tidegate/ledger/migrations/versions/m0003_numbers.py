"""Numbers that order records, and fences that a lost ledger cannot have given."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns; earlier records have the number 0."""
    for table, column, default in (
        ("pipeline", "next_number", "1"),
        ("pipeline", "first_fence", "0"),
        ("window", "number", "0"),
        ("partition", "number", "0"),
    ):
        op.add_column(
            table, sa.Column(column, sa.BigInteger(), nullable=False, server_default=default)
        )
    for table, column in (("window", "attempt"), ("partition", "claim_fence")):
        if op.get_bind().dialect.name == "postgresql":
            op.alter_column(table, column, type_=sa.BigInteger())
