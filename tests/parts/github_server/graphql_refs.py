"""What the GraphQL API shows of a repository's refs, commits and files."""

from collections.abc import Mapping
from typing import Any

from tests.parts.github_server.graphql_fields import Fields, argument
from tests.parts.github_server.state import Repository

MOST_TEXT = 512_000
"""Longer text is cut."""


def ref_fields(repository: Repository) -> Fields:
    """The fields of a repository that are about its refs."""
    bare = repository.git

    def blob(content: bytes) -> Fields:
        return {
            "__typename": lambda _: "Blob",
            "text": lambda _: content[:MOST_TEXT].decode("utf-8", "replace"),
            "isTruncated": lambda _: len(content) > MOST_TEXT,
        }

    def file(commit: str, path: str) -> Fields | None:
        found = bare.text("ls-tree", commit, "--", path).split()
        return {"object": lambda _: blob(bare.blob(found[2]))} if found else None

    def target(name: str) -> Fields:
        commit = bare.text("rev-parse", name)
        return {
            "__typename": lambda _: "Commit",
            "oid": lambda _: commit,
            "file": lambda given: file(commit, argument(given, "path", str)),
        }

    def ref(name: str, prefix: str) -> Fields | None:
        if name not in bare.refs(prefix):
            return None
        return {"name": lambda _: name.removeprefix(prefix), "target": lambda _: target(name)}

    def refs(given: Mapping[str, Any]) -> Fields:
        prefix = argument(given, "refPrefix", str)
        names = sorted(bare.refs(prefix))[: argument(given, "first", int)]
        return {"nodes": lambda _: [ref(name, prefix) for name in names]}

    default = f"refs/heads/{repository.default_branch}"
    return {
        "defaultBranchRef": lambda _: ref(default, "refs/heads/"),
        "ref": lambda given: ref(argument(given, "qualifiedName", str), "refs/"),
        "refs": refs,
    }
