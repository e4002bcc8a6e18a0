"""What the GraphQL API shows of a repository's refs, commits and files."""

from tests.parts.github_server.graphql_fields import Fields, argument
from tests.parts.github_server.state import Repository


def ref_fields(repository: Repository) -> Fields:
    """The fields of a repository that are about its refs."""
    bare = repository.git

    def history(tip: str, count: int) -> Fields:
        rows = bare.text("rev-list", "--parents", f"--max-count={count}", tip).splitlines()
        return {"nodes": lambda _: [commit(*row.split()) for row in rows]}

    def commit(oid: str, *parents: str) -> Fields:
        return {
            "oid": lambda _: oid,
            "parents": lambda given: {
                "nodes": lambda _: [
                    {"oid": lambda _, parent=parent: parent}
                    for parent in parents[: argument(given, "first", int)]
                ]
            },
        }

    def target(name: str) -> Fields:
        commit = bare.text("rev-parse", name)
        return {
            "__typename": lambda _: "Commit",
            "oid": lambda _: commit,
            "history": lambda given: history(commit, argument(given, "first", int)),
        }

    def ref(name: str, prefix: str) -> Fields | None:
        if name not in bare.refs(prefix):
            return None
        return {"name": lambda _: name.removeprefix(prefix), "target": lambda _: target(name)}

    default = f"refs/heads/{repository.default_branch}"
    return {
        "defaultBranchRef": lambda _: ref(default, "refs/heads/"),
    }
