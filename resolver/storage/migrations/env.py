"""The script that alembic runs to apply the revisions in `versions/`.

Source: https://alembic.sqlalchemy.org/en/latest/cookbook.html#connection-sharing
"""

from alembic import context

from resolver.storage.schema import VERSION_TABLE

if context.is_offline_mode():
    context.configure(
        dialect_name=context.config.attributes["dialect"],
        version_table=VERSION_TABLE,
        literal_binds=True,
        transactional_ddl=False,
    )
else:
    context.configure(
        connection=context.config.attributes["connection"], version_table=VERSION_TABLE
    )
with context.begin_transaction():
    context.run_migrations()
