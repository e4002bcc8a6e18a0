"""The index of runs, which the list of runs and the pages of costs are made from."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "resolver_runs",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("repository", sa.String(300), nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("requester", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("command", sa.String(40), nullable=False),
        sa.Column("state", sa.String(40), nullable=False),
        sa.Column("stage", sa.String(40), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("cause", sa.String(60), nullable=False),
        sa.Column("model", sa.String(300), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("ended", sa.Float),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("unpriced", sa.Integer, nullable=False),
        sa.Column("tokens_in", sa.Integer, nullable=False),
        sa.Column("tokens_out", sa.Integer, nullable=False),
        sa.Column("branch", sa.Text, nullable=False),
        sa.Column("pull_request", sa.Text, nullable=False),
        sa.Column("executor", sa.String(200), nullable=False),
    )
    for column in ("repository", "requester", "state", "day"):
        op.create_index(f"ix_resolver_runs_{column}", "resolver_runs", [column])
