"""The tables of the releases before the first migration.

Each is created only if it does not exist: these releases created their tables one by one and kept
no revision.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables of requests, costs, polls of deliveries, and outcomes."""
    _create_requests()
    op.create_table(
        "resolver_spending",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("repository", sa.String(300), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("unpriced", sa.Integer, nullable=False),
        sa.Column("reserved", sa.Float, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        if_not_exists=True,
    )
    _create_index("ix_resolver_spending_repository", "resolver_spending", "repository")
    _create_index("ix_resolver_spending_day", "resolver_spending", "day")
    op.create_table(
        "resolver_looks",
        sa.Column("webhook", sa.String(400), primary_key=True),
        sa.Column("until", sa.Float, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "resolver_outcomes",
        sa.Column("repository", sa.String(300), primary_key=True),
        sa.Column("due", sa.Float, nullable=False),
        sa.Column("outcomes", sa.Text, nullable=False),
        if_not_exists=True,
    )
    _create_index("ix_resolver_outcomes_due", "resolver_outcomes", "due")


def _create_requests() -> None:
    op.create_table(
        "resolver_requests",
        sa.Column(
            "position",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("id", sa.String(300), nullable=False, unique=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger),
        sa.Column("subject", sa.BigInteger),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("trigger", sa.Text, nullable=False),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("announced", sa.Boolean, nullable=False),
        sa.Column("claim", sa.Integer, nullable=False),
        sa.Column("begun", sa.Boolean, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("crashes", sa.Integer, nullable=False),
        sa.Column("outages", sa.Integer, nullable=False),
        sa.Column("outage_began", sa.Float, nullable=False),
        sqlite_autoincrement=True,
        if_not_exists=True,
    )
    for name, columns in (
        ("next", ("state", "kind", "repository", "position")),
        ("oldest", ("state", "kind", "position")),
        ("due", ("state", "not_before")),
        ("announced", ("state", "kind", "announced", "position")),
        ("thread", ("repository", "subject", "state")),
    ):
        _create_index(f"resolver_requests_{name}", "resolver_requests", *columns)


def _create_index(name: str, table: str, *columns: str) -> None:
    op.create_index(name, table, list(columns), if_not_exists=True)
