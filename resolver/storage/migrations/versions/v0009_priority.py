"""The priority of requests: those that a person waits for come first."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

INDEX, TABLE = "resolver_requests_next", "resolver_requests"


def upgrade() -> None:
    """Add the column, 0 in all rows, and put it into the index that the next request is read by."""
    op.add_column(TABLE, sa.Column("priority", sa.Integer, nullable=False, server_default="0"))
    op.drop_index(INDEX, TABLE)
    op.create_index(INDEX, TABLE, ["state", "kind", "repository", "priority", "position"])
