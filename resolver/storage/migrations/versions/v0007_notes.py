"""The notes of runs about repositories, which were files of one machine."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "resolver_notes",
        sa.Column("repository", sa.String(300), primary_key=True),
        sa.Column("notes", sa.Text, nullable=False),
    )
