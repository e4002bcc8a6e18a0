"""Where a dispatch and a failing check are worked on, asked of a GitHub over a real socket."""

from datetime import UTC, datetime
from typing import Any

import pytest

from resolver.github.events.checks import check_key
from resolver.github.events.permission import IgnoredEvent
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import Actor, Trigger, TriggerKind
from resolver.runs.conversation.commands import locate_dispatch
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

BRANCH = "agent/issue-1-sign"


@pytest.fixture
def server(github: GitHubServer) -> GitHubServer:
    github.create_repository(NAME, {"calc.py": "x = 1\n"})
    return github


def tip(server: GitHubServer, branch: str = "main") -> str:
    found = server.repository(NAME).git.tip(branch)
    assert found is not None
    return found


def failed(server: GitHubServer, branch: str = "main", **changes: Any) -> Trigger:
    """A check of the branch's newest commit has failed."""
    head = changes.pop("head", "") or tip(server, branch)
    values: dict[str, Any] = {
        "key": check_key(NAME, head),
        "kind": TriggerKind.CHECK_FAILED,
        "repository": NAME,
        "is_pull_request": branch != "main",
        "actor": Actor(login="mona"),
        "at": datetime.now(UTC),
        "head": head,
        "check": "CI",
        "branch": branch,
    }
    return Trigger(**{**values, **changes})


def place(server: GitHubServer, trigger: Trigger, **options: Any) -> Trigger | IgnoredEvent:
    return locate_dispatch(trigger, forge_for(server), **options)


def reason(server: GitHubServer, trigger: Trigger, **options: Any) -> str:
    found = place(server, trigger, **options)
    assert isinstance(found, IgnoredEvent)
    return found.reason


def number(server: GitHubServer, trigger: Trigger, **options: Any) -> int:
    found = place(server, trigger, **options)
    assert isinstance(found, Trigger)
    assert found.number is not None
    return found.number


def our_pull(server: GitHubServer, author: str = BOT, body: str = "") -> Issue:
    server.commit(NAME, BRANCH, {"calc.py": "x = 2\n"})
    return server.create_pull(NAME, BRANCH, "Sign", body, author=author)


def add_run_comment(server: GitHubServer, thread: Issue, commit: str) -> None:
    """A run for the checks of that commit has said something on the thread."""
    marker = run_marker(check_key(NAME, commit), Ending.NO_CHANGE)
    server.add_comment(thread, f"{marker}\n\nNothing.", BOT)


def test_a_check_of_the_default_branch_gets_an_issue_of_ours_once(server: GitHubServer) -> None:
    first = number(server, failed(server))
    issue = server.repository(NAME).issues[first]
    assert issue.title == "CI fails on main"
    assert issue.author.login == BOT
    assert tip(server) in (issue.body or "")
    assert issue.labels == []
    assert number(server, failed(server)) == first
    server.commit(NAME, "main", {"calc.py": "x = 3\n"})
    assert number(server, failed(server)) == first
    assert number(server, failed(server, check="Lint")) != first


def test_somebody_elses_issue_with_our_marker_is_not_ours(server: GitHubServer) -> None:
    first = number(server, failed(server))
    body = server.repository(NAME).issues[first].body or ""
    server.repository(NAME).issues[first].state = "closed"
    server.create_issue(NAME, "CI fails on main", body, author="eve")
    assert number(server, failed(server)) == 3


def test_while_our_fix_is_open_nothing_is_begun(server: GitHubServer) -> None:
    first = number(server, failed(server))
    pull = our_pull(server, body=run_marker("k", Ending.PULL_REQUEST, first, "20260101-000000-aa"))
    server.commit(NAME, "main", {"other.py": "y = 1\n"})
    assert f"#{pull.number} is open" in reason(server, failed(server))
    pull.state = "closed"
    assert number(server, failed(server)) == first


def test_a_check_of_our_own_pull_request_is_worked_on_there(server: GitHubServer) -> None:
    pull = our_pull(server)
    assert number(server, failed(server, BRANCH)) == pull.number
    assert number(server, failed(server, BRANCH, number=99)) == pull.number


def test_somebody_elses_pull_request_from_such_a_branch_is_left_alone(
    server: GitHubServer,
) -> None:
    our_pull(server, author="eve")
    assert "Resolver has no open pull request" in reason(server, failed(server, BRANCH))


@pytest.mark.parametrize("branch", ["main", BRANCH])
def test_a_newer_commit_is_reported_by_its_own_checks(server: GitHubServer, branch: str) -> None:
    our_pull(server)
    trigger = failed(server, branch)
    server.commit(NAME, branch, {"calc.py": "x = 9\n"})
    assert "newer commit" in reason(server, trigger)
    assert isinstance(place(server, trigger, is_rerun=True), Trigger)


def test_the_attempts_on_our_own_pull_request_are_counted_there(server: GitHubServer) -> None:
    pull = our_pull(server)
    commits = [tip(server, BRANCH)]
    for value in (3, 4):
        server.commit(NAME, BRANCH, {"calc.py": f"x = {value}\n"})
        commits.append(tip(server, BRANCH))
    add_run_comment(server, pull, commits[0])
    assert number(server, failed(server, BRANCH)) == pull.number
    add_run_comment(server, pull, commits[1])
    assert "tried 2 times" in reason(server, failed(server, BRANCH))


def test_what_others_say_and_other_runs_do_not_count(server: GitHubServer) -> None:
    pull = our_pull(server)
    earlier = tip(server, BRANCH)
    server.commit(NAME, BRANCH, {"calc.py": "x = 3\n"})
    marker = run_marker(check_key(NAME, earlier), Ending.NO_CHANGE)
    for _ in range(3):
        server.add_comment(pull, f"{marker}\n\nMine.", "eve")
        server.add_comment(pull, run_marker("issue_comment:5", Ending.NO_CHANGE), BOT)
    add_run_comment(server, pull, tip(server, BRANCH))  # this very run, whose job is done again
    assert number(server, failed(server, BRANCH)) == pull.number


def test_what_fails_together_is_worked_on_together(server: GitHubServer) -> None:
    first = number(server, failed(server))
    add_run_comment(server, server.repository(NAME).issues[first], tip(server))
    assert f"handled in #{first}" in reason(server, failed(server, check="Lint"))
    assert len(server.repository(NAME).issues) == 1
    server.commit(NAME, "main", {"calc.py": "x = 3\n"})
    assert number(server, failed(server, check="Lint")) == 2


def test_a_run_that_was_cut_off_finds_its_place_again_whatever_it_has_done(
    server: GitHubServer,
) -> None:
    first = number(server, failed(server))
    our_pull(server, body=run_marker("k", Ending.PULL_REQUEST, first, "20260101-000000-aa"))
    assert number(server, failed(server), is_rerun=True) == first


@pytest.mark.parametrize("on_pull", [True, False])
def test_a_dispatch_learns_whether_its_number_is_a_pull_request(
    server: GitHubServer, on_pull: bool
) -> None:
    subject = our_pull(server) if on_pull else server.create_issue(NAME, "a", "b", author="zoe")
    changes = {"number": subject.number, "is_pull_request": False}
    found = place(server, failed(server, kind=TriggerKind.DISPATCHED, **changes))
    assert isinstance(found, Trigger)
    assert found.is_pull_request is on_pull
