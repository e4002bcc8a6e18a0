"""The logs, files and issue histories of runs, which any process can read."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables. The event store of earlier releases may have made the one of events."""
    op.create_table(
        "resolver_events",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(100), nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "resolver_archived_runs",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("request", sa.BigInteger, nullable=False),
        sa.Column("claim", sa.Integer, nullable=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("changes", sa.Integer, nullable=False),
    )
    op.create_table(
        "resolver_run_files",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("changed", sa.Float, nullable=False),
    )
    op.create_table(
        "resolver_run_chunks",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "resolver_issue_history",
        sa.Column(
            "position",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("conversation", sa.String(400), nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("identity", sa.String(64), nullable=False, unique=True),
    )
    op.create_index(
        "ix_resolver_issue_history_conversation", "resolver_issue_history", ["conversation"]
    )
