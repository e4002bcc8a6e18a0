"""The time at which a request was done, by which `resolver admin purge` removes it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; 0 in the rows of requests that are done already."""
    op.add_column(
        "resolver_requests",
        sa.Column("finished_at", sa.Float, nullable=False, server_default="0"),
    )
