"""Tests of the number of requests for lists: one per page."""

from collections import Counter
from collections.abc import Callable

import pytest
from github.IssueComment import IssueComment

from resolver.github.client.resources import Listing
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import Ending, check_marker, run_marker
from resolver.models.run import Command, Trigger, TriggerKind
from tests.github import reports
from tests.github.test_github_comments import progress
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

BRANCH = "agent/issue-1-four"


@pytest.fixture
def pull(github: GitHubServer) -> Issue:
    """One of ours, for an issue."""
    github.create_repository(NAME, {"a.py": "1\n2\n3\n"})
    github.grant("alice", NAME, "write")
    github.create_issue(NAME, "It breaks", "Help", author="alice")
    github.commit(NAME, BRANCH, {"a.py": "1\n2\n4\n"}, "Say four")
    body = run_marker("k", Ending.PULL_REQUEST, 1, "r")
    return github.create_pull(NAME, BRANCH, "Say four", body, author=BOT)


def fill(github: GitHubServer, pull: Issue, many: int) -> None:
    """So many more of everything that is read in lists."""
    for n in range(many):
        github.add_comment(pull, f"word {n}", (BOT, "carol", "alice")[n % 3])
        github.add_review_comment(pull, "a.py", 3, f"word {n}", (BOT, "carol")[n % 2])
        github.add_review(pull, f"word {n}", (BOT, "carol")[n % 2])
        github.create_issue(NAME, f"Check {n}", check_marker(f"check {n}"), author=BOT)
        branch = f"other-{len(github.repository(NAME).issues)}"
        github.commit(NAME, branch, {"a.py": f"{n}\n"}, f"Say {n}")
        github.create_pull(NAME, branch, f"Say {n}", "So it is.", author=(BOT, "carol")[n % 2])


def a_trigger(pull: Issue, **changes: object) -> Trigger:
    of_pull = {"number": pull.number, "is_pull_request": True, "comment_id": None}
    return reports.trigger(**{"key": "none", **of_pull, **changes})


Look = Callable[[GitHubServer, GitHubForge, Issue], object]

LOOKS: dict[str, Look] = {
    "the task": lambda _, forge, pull: forge.read(a_trigger(pull)),
    "an earlier publication": lambda _, forge, pull: forge.find_publication(a_trigger(pull)),
    "an earlier review": lambda _, forge, pull: forge.find_publication(
        a_trigger(pull, command=Command.REVIEW)
    ),
    "an earlier reply on a line": lambda _, forge, pull: forge.find_publication(
        a_trigger(pull, kind=TriggerKind.REVIEW_COMMENT, command=Command.QUESTION)
    ),
    "what was pushed": lambda _, forge, pull: forge.heads().pushed(
        a_trigger(pull, number=1, is_pull_request=False), "r", "agent/"
    ),
    "an open pull request": lambda _, forge, pull: forge.heads().of_issue(
        a_trigger(pull, number=1, is_pull_request=False), "agent/"
    ),
    "comments of runs that died": lambda _, forge, pull: forge.progress_writer().close_killed_runs(
        progress(pull)
    ),
    "who has spoken": lambda _, forge, pull: forge.recent_comments(pull.number),
    "the issues of checks": lambda _, forge, __: forge.check_conversations().issues(),
    "a fix of a check": lambda _, forge, pull: forge.check_conversations().find_fix(pull.number),
    "attempts at a check": lambda _, forge, pull: forge.check_conversations().count_attempts(
        pull.number, "main", str
    ),
    "a run of the sweep": lambda _, forge, pull: forge.labeled("agent").active_since(
        a_trigger(pull)
    ),
}


def test_reading_needs_no_request_per_element(github: GitHubServer, pull: Issue) -> None:
    def costs(look: Look) -> Counter[str]:
        before = len(github.requests)
        look(github, forge_for(github), pull)
        made = github.requests[before:]
        return Counter(f"{request.kind} {request.method} {request.path}" for request in made)

    fill(github, pull, 2)
    few = {name: costs(look) for name, look in LOOKS.items()}
    fill(github, pull, 6)
    assert {name: costs(look) for name, look in LOOKS.items()} == few


@pytest.mark.parametrize(("many", "limit", "pages"), [(0, 5, 1), (100, 5, 1), (301, 150, 4)])
def test_reading_the_newest_needs_their_pages_and_the_first(
    github: GitHubServer, pull: Issue, many: int, limit: int, pages: int
) -> None:
    for n in range(many):
        github.add_comment(pull, f"word {n}", "carol")
    repository = forge_for(github)._repository
    url = f"{repository.url}/issues/{pull.number}/comments"
    before = len(github.requests)
    found = Listing(repository.requester, IssueComment, url).newest(limit)
    assert [comment.body for comment in found] == [f"word {n}" for n in range(many)][-limit:]
    assert len(github.requests) - before == pages
    assert [comment.raw_data["body"] for comment in found] == [comment.body for comment in found]
    assert len(github.requests) - before == pages, "an element was asked for by itself"
