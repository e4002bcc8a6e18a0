"""Writes the SQL scripts that create the server's tables, from the migrations."""

from resolver.storage.schema import DIALECTS, render_schema, schema_file

if __name__ == "__main__":
    for dialect in DIALECTS:
        schema_file(dialect).write_text(render_schema(dialect))
