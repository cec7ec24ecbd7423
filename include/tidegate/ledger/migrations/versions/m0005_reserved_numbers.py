"""Windows and partitions store the last number that was reserved for them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_GIVEN = """
UPDATE "{table}" SET reserved =
    (SELECT next_number - 1 FROM pipeline WHERE pipeline.name = "{table}".pipeline)
"""


def upgrade() -> None:
    """Add the columns; any number that was given before may have been for them."""
    for table in ("window", "partition"):
        op.add_column(
            table, sa.Column("reserved", sa.BigInteger(), nullable=False, server_default="0")
        )
        op.execute(_GIVEN.format(table=table))
