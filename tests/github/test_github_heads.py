"""Tests of finding Resolver's pull requests of an issue, and the commits of a run in them."""

import pytest

from resolver.github.comments.pull_request_heads import GitHubPullRequestHeads
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import Trigger
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

RUN = "20260101-120000-abcdef"
PREFIX = "agent/issue-1-"
FORK = "octo/demo-two"


@pytest.fixture(autouse=True)
def issue(github: GitHubServer) -> Issue:
    github.create_repository(NAME, files={"README.md": "hello"})
    return github.create_issue(NAME, "It breaks", "Please help", author="mallory")


def heads(github: GitHubServer) -> GitHubPullRequestHeads:
    return forge_for(github).heads()


def trigger() -> Trigger:
    return reports.trigger(number=1)


def push(github: GitHubServer, branch: str, by: str = BOT, run: str = RUN) -> str:
    """A commit of the run, pushed by this account."""
    repository = github.repository(NAME)
    github.world.note_pushes(repository)
    message = f"Fix it\n\nResolver-Run: {run}"
    tip = repository.git.tip(branch) or repository.git.tip("main")
    made = repository.git.commit(
        branch, {f"{run}.txt": "x"}, message, BOT, github.world.now(), parent=tip
    )
    repository.pusher = github.world.account(by)
    github.world.note_pushes(repository)
    return str(made)


def opened(github: GitHubServer, branch: str, author: str = BOT, body: str = "") -> Issue:
    github.commit(NAME, branch, {f"{branch[-5:]}.py": "1"}, "Begin")
    return github.create_pull(NAME, branch, "Fix it", body, author=author)


def of_fork(github: GitHubServer, branch: str, author: str = BOT) -> Issue:
    """A pull request from a branch of the same name, in a fork of the same owner."""
    fork = github.create_repository(FORK, parent=NAME)
    return github.create_pull(NAME, (fork, branch), "Fix it", "", author)


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_commit_is_found_in_any_of_resolvers_pull_requests(
    github: GitHubServer, is_followed: bool
) -> None:
    pull = opened(github, f"{PREFIX}fix")
    made = push(github, f"{PREFIX}fix")
    pull.tips()
    if is_followed:
        opened(github, f"{PREFIX}fix-2")
    found = heads(github).pushed(trigger(), RUN, PREFIX)
    assert found is not None and found.commit == made and found.repeated
    assert found.how == "added" and found.pull_request is not None
    assert found.pull_request.number == pull.number


def test_a_commit_is_found_in_the_pull_request_that_asked_for_it(github: GitHubServer) -> None:
    pull = opened(github, "half", author="mona")
    request = reports.trigger(number=pull.number, is_pull_request=True)
    assert heads(github).pushed(request, RUN, PREFIX) is None
    made = push(github, "half")
    pull.tips()
    found = heads(github).pushed(request, RUN, PREFIX)
    assert found is not None and (found.commit, found.how, found.branch) == (made, "pushed", "half")
    assert found.repository == "", "the branch is in the repository itself"
    assert found.pull_request is not None and found.pull_request.number == pull.number


def test_commits_of_other_runs_are_not_found(github: GitHubServer) -> None:
    opened(github, f"{PREFIX}fix")
    push(github, f"{PREFIX}fix", run=f"{RUN}-2")
    opened(github, f"{PREFIX}theirs", author="mallory")
    push(github, f"{PREFIX}theirs")
    opened(github, "agent/issue-12-other")
    push(github, "agent/issue-12-other")
    other = run_marker("k", Ending.PULL_REQUEST, 7, "r")
    opened(github, f"{PREFIX}seven", body=other)
    push(github, f"{PREFIX}seven")
    opened(github, f"{PREFIX}more")
    push(github, f"{PREFIX}more", by="mallory")
    assert heads(github).pushed(trigger(), RUN, PREFIX) is None


def test_a_fork_of_the_same_owner_is_another_repository(github: GitHubServer) -> None:
    branch = f"{PREFIX}fix"
    github.commit(NAME, branch, {"a.py": "1"}, "Begin")
    push(github, branch)
    fork_pull = of_fork(github, branch)
    assert heads(github).of_issue(trigger(), PREFIX) is None
    assert heads(github).pushed(trigger(), RUN, PREFIX) is None
    own_pull = github.create_pull(NAME, branch, "Fix it", "", author=BOT)
    late = github.create_pull(NAME, (github.repository(FORK), branch), "Fix it", "", BOT)
    found = heads(github).of_issue(trigger(), PREFIX)
    assert found is not None and found.number == own_pull.number
    pushed = heads(github).pushed(trigger(), RUN, PREFIX)
    assert pushed is not None and pushed.pull_request is not None
    assert pushed.pull_request.number == own_pull.number not in {fork_pull.number, late.number}


def test_what_was_pushed_after_the_request_is_not_worked_on_and_is_named(
    github: GitHubServer,
) -> None:
    branch = f"{PREFIX}one"
    number = opened(github, branch).number
    head = push(github, branch)
    github.advance(5)
    asked_at = github.world.now()
    request = trigger().model_copy(update={"at": asked_at})
    found = heads(github).of_issue(request, PREFIX)
    assert found is not None and (found.number, found.head, found.moved) == (number, head, "")
    github.advance(5)
    push(github, branch, "mona", "late")
    found = heads(github).of_issue(request, PREFIX)
    assert found is not None and found.head == head
    assert "newer commits than the one asked about" in found.moved


@pytest.mark.parametrize(
    "whose", ["a person's", "of another branch", "of a later issue", "of an earlier issue"]
)
def test_a_pull_request_that_is_not_ours_for_the_issue_is_not_followed(
    github: GitHubServer, whose: str
) -> None:
    github.create_issue(NAME, "It breaks too", "Please help", author="mallory")
    named = {"of a later issue": 999, "of an earlier issue": 1}.get(whose, 2)
    marker = run_marker("key", Ending.PULL_REQUEST, named, RUN)
    branch = "feature" if whose == "of another branch" else "agent/issue-2-x"
    opened(github, branch, "mona" if whose == "a person's" else BOT, f"{marker}\n\nFixes #2")
    assert heads(github).of_issue(reports.trigger(number=2), "agent/issue-2-") is None
