"""Validation of GraphQL queries against the schema that GitHub publishes."""

from functools import cache
from pathlib import Path

from graphql import GraphQLError, GraphQLSchema, build_schema, parse, validate


@cache
def _load(path: Path) -> GraphQLSchema:
    """The schema in that file (2 s, 50 MB). Its own small mistakes are none of ours."""
    return build_schema(
        path.read_text(), assume_valid=True, assume_valid_sdl=True, no_location=True
    )


@cache
def query_problems(path: Path, query: str) -> tuple[str, ...]:
    """Return the violations of the schema by a query. Each query is checked once."""
    try:
        document = parse(query)
    except GraphQLError as error:
        return (f"GraphQL: {error.message}",)
    return tuple(f"GraphQL: {error.message}" for error in validate(_load(path), document))
