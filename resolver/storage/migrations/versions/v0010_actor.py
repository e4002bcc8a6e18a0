"""The account that asks for a run, for the limit of runs that one account may have at a time."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column, empty in all rows: runs that wait already are not limited."""
    column = sa.Column("actor", sa.Text, nullable=False, server_default="")
    op.add_column("resolver_requests", column)
