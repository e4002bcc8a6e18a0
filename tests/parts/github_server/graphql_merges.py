"""What the GraphQL API shows of a pull request's branches, commits and merge."""

from tests.parts.github_server import documents_git
from tests.parts.github_server.graphql_fields import Fields
from tests.parts.github_server.state import Issue


def merge_fields(issue: Issue) -> Fields:
    """Fields of a pull request; its state is MERGED once it is."""
    pull = issue.pull
    assert pull is not None
    _, head = documents_git.fork_point(issue)
    source = pull.head_repository.full_name
    state = "MERGED" if pull.merged_at else issue.state.upper()
    return {
        "state": lambda _: state,
        "headRefName": lambda _: pull.head,
        "headRefOid": lambda _: head,
        "baseRefName": lambda _: pull.base,
        "headRepository": lambda _: {"nameWithOwner": lambda _: source},
    }
