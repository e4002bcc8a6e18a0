"""The migrations of the server's database: one alembic revision in each file of `versions/`.

`schema_sqlite.sql` and `schema_postgresql.sql` are what the revisions add up to. `make docs` writes
them, and a new database is created from them.
"""
