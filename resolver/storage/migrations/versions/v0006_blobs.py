"""The objects of an S3-compatible store that have the content of large files."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; it is empty in the rows of files whose content is in the database."""
    op.add_column(
        "resolver_run_files",
        sa.Column("blob", sa.String(300), nullable=False, server_default=""),
    )
