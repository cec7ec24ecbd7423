"""Publications name their commit plan, and the person who overruled the trigger."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_PLAN_OF_AN_OPEN_COMMIT = """
UPDATE publication SET commit_plan = 'publications/'
    || CASE partition WHEN '' THEN 'all' ELSE partition END
    || '/' || (base_revision + 1) || '-' || digest || '.json'
WHERE state IN ('prepared', 'moved', 'marked')
"""


def upgrade() -> None:
    """Add the columns; a commit that began before has its plan at the earlier path."""
    op.add_column("publication", sa.Column("override", sa.Text(), nullable=True))
    op.add_column("publication", sa.Column("commit_plan", sa.Text(), nullable=True))
    op.add_column("revision", sa.Column("override", sa.Text(), nullable=True))
    op.execute(_PLAN_OF_AN_OPEN_COMMIT)
