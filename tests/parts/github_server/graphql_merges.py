"""What the GraphQL API shows of a pull request's branches, commits and merge."""

from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git
from tests.parts.github_server.bare import CommitFacts, Signature
from tests.parts.github_server.graphql_fields import Fields, connection
from tests.parts.github_server.state import Issue


def merge_fields(issue: Issue) -> Fields:
    """Fields of a pull request; its state is MERGED once it is."""
    pull = issue.pull
    assert pull is not None
    base, head = documents_git.fork_point(issue)
    source = pull.head_repository.full_name
    state = "MERGED" if pull.merged_at else issue.state.upper()
    git = issue.repository.git
    merge = {"oid": lambda _: pull.merge_commit} if pull.merge_commit else None
    return {
        "state": lambda _: state,
        "headRefName": lambda _: pull.head,
        "headRefOid": lambda _: head,
        "baseRefName": lambda _: pull.base,
        "headRepository": lambda _: {"nameWithOwner": lambda _: source},
        "mergeCommit": lambda _: merge,
        "commits": lambda arguments: connection(
            [{"commit": _shown(git.facts(sha))} for sha in git.between(base, head)], arguments
        ),
    }


def _shown(facts: CommitFacts):  # type: ignore[no-untyped-def]
    fields = {
        "oid": lambda _: facts.sha,
        "message": lambda _: facts.message,
        "committedDate": lambda _: core.stamp(facts.committer.date),
        "author": lambda _: _person(facts.author),
        "committer": lambda _: _person(facts.committer),
    }
    return lambda _: fields


def _person(signature: Signature) -> Fields:
    return {"name": lambda _: signature.name, "email": lambda _: signature.email}
