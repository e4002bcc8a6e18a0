"""Reads what a run needs to know of a repository's refs, and of its owner's shared repositories, in
one query.

Git could be asked for all of it, at two requests or more for each repository and for each ref that
is read. Source: https://docs.github.com/en/graphql/reference/objects#repository
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.resources import query_graphql

logger = logging.getLogger("resolver.github")

MAX_LISTED_REFS = 100
"""Maximum number of refs below the prefix that are listed."""

_QUERY = """
query($owner: String!, $name: String!, $ref: String!, $path: String!, $below: String!) {
  repository(owner: $owner, name: $name) {
    isPrivate
    defaultBranchRef { name target { oid } }
    ref(qualifiedName: $ref) { target {
      oid
      ... on Commit { file(path: $path) { object { ... on Blob { text isTruncated } } } }
    } }
    refs(refPrefix: $below, first: %d) { nodes { name } }
  }
  %s
}
"""


@dataclass(frozen=True)
class RepositorySnapshot:
    """The state of a repository at one moment.

    branch, tip: name and commit of the default branch, None if it has no commit.
    ref_tip: the commit of the ref, None if there is no such ref.
    content: the text of the ref's file, None if it can't be shown as a whole.
    ref_names: the names of the refs below the prefix, without it.
    siblings: those of the owner's repositories that the token can read and whose content may be
        shown in this one: a public repository shows that of public ones only.
    """

    branch: str | None = None
    tip: str | None = None
    ref_tip: str | None = None
    content: str | None = None
    ref_names: tuple[str, ...] = ()
    siblings: frozenset[str] = frozenset()


def read_snapshot(
    access: GitHubAccess,
    repository: str,
    ref: str,
    path: str,
    ref_prefix: str,
    siblings: Sequence[str],
) -> RepositorySnapshot | None:
    """Return the state of the repository, None if GitHub does not answer.

    Whatever it contains can be read from git as well, so this waits for nothing and never raises.

    ref, path: a ref and a file of its commit.
    ref_prefix: prefix of refs, with a slash at its end.
    siblings: names of repositories of the same owner.
    """
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name, "ref": ref, "path": path, "below": ref_prefix}
    aliases = {f"sibling{number}": sibling for number, sibling in enumerate(siblings)}
    fields = (
        f'{alias}: repository(owner: $owner, name: "{sibling}") {{ isPrivate }}'
        for alias, sibling in aliases.items()
    )
    graphql = _QUERY % (MAX_LISTED_REFS, "\n  ".join(fields))
    hasty_access = access.with_short_timeouts()
    try:
        with hasty_access.wrap_errors(f"read the refs of {repository}", "contents: read"):
            answer = query_graphql(hasty_access, graphql, variables, nullable_fields=tuple(aliases))
            default, tip = answer["repository"]["defaultBranchRef"], answer["repository"]["ref"]
            is_private = answer["repository"]["isPrivate"]
            file = tip["target"].get("file") if tip else None
            blob = file["object"] if file else None
            return RepositorySnapshot(
                branch=default["name"] if default else None,
                tip=default["target"]["oid"] if default else None,
                ref_tip=tip["target"]["oid"] if tip else None,
                content=blob["text"] if blob and not blob["isTruncated"] else None,
                ref_names=tuple(node["name"] for node in answer["repository"]["refs"]["nodes"]),
                siblings=frozenset(
                    sibling
                    for alias, sibling in aliases.items()
                    if (found := answer.get(alias)) and (is_private or not found["isPrivate"])
                ),
            )
    except ForgeError as error:
        logger.info("%s", error.what)
        return None
