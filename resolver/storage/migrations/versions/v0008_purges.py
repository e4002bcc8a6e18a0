"""The purges of runs, so that each machine removes its folders."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "resolver_purges",
        sa.Column("repository", sa.String(300), primary_key=True),
        sa.Column("before", sa.Float, nullable=False),
    )
