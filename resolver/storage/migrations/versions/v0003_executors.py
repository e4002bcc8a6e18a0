"""The processes that execute requests, and which of them holds a claim."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table of executors, and add them to the requests."""
    op.create_table(
        "resolver_executors",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("version", sa.String(50), nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.Column("draining", sa.Boolean, nullable=False),
    )
    op.add_column(
        "resolver_requests",
        sa.Column("notice_until", sa.Float, nullable=False, server_default="0"),
    )
    op.add_column(
        "resolver_requests",
        sa.Column("executor", sa.String(36), nullable=False, server_default=""),
    )
