"""Tests of publishing over a real socket: once each, with a message for each failure."""

from datetime import timedelta
from typing import Any

import pytest

from resolver.errors import ForgeError, Refused
from resolver.github.comments.report import Report, failure_from_error
from resolver.github.text.markers import Ending, answer_marker, refusal_marker, run_marker
from resolver.models.run import Task, Trigger
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

BRANCH = "agent/1-it-breaks"


@pytest.fixture
def issue(github: GitHubServer) -> Issue:
    github.create_repository(NAME, files={"README.md": "hello"})
    issue = github.create_issue(NAME, "It breaks", "Please help", author="mallory")
    github.commit(NAME, BRANCH, {"a.py": "fixed"})
    return issue


def trigger_on(issue: Issue, **changes: Any) -> Trigger:
    return reports.trigger(number=issue.number, **{"comment_id": None, **changes})


def report_on(issue: Issue, **changes: Any) -> Report:
    trigger = changes.pop("trigger", None) or trigger_on(issue)
    task = Task(
        trigger=trigger, title="It breaks", body="", base_branch="main", source="http://x/y.git"
    )
    return reports.report(trigger=trigger, **{"task": task, **changes})


def pulls(github: GitHubServer) -> list[Issue]:
    return [i for i in github.repository(NAME).issues.values() if i.pull]


@pytest.mark.parametrize(
    ("answer", "cause", "next_step"),
    [
        (
            {"errors": [{"resource": "PullRequest", "field": "base", "code": "invalid"}]},
            "base_gone",
            "restore the branch",
        ),
        ({"message": "Repository rule violations found"}, "push_rule", "look at the rule"),
        (
            {"message": "Validation Failed"},
            "proposal",
            "open it yourself: {compare}/main...{branch}?",
        ),
    ],
)
def test_a_refused_pull_request_names_the_obstacle_and_what_to_do(
    github: GitHubServer, issue: Issue, answer: dict[str, Any], cause: str, next_step: str
) -> None:
    github.fail_next("POST", "/pulls$", 422, body=answer)
    with pytest.raises(ForgeError) as refused:
        forge_for(github).open_pull_request(report_on(issue), BRANCH)
    compare = f"{github.server_url}/{NAME}/compare"
    assert refused.value.cause == cause
    assert refused.value.next_step.startswith(next_step.format(compare=compare, branch=BRANCH))


def test_a_person_is_refused_once_per_conversation(github: GitHubServer, issue: Issue) -> None:
    forge = forge_for(github)
    refused = failure_from_error(Refused("alice has no write access", "ask somebody"))

    def refuse(login: str, key: str) -> str:
        actor = reports.Actor(login=login)
        trigger = trigger_on(issue, actor=actor, key=key)
        return forge.comment(Report(trigger=trigger, run="r", failure=refused))

    assert refuse("mallory", "a") == refuse("Mallory", "b")
    refuse("trudy", "c")
    assert len(issue.comments) == 2


def test_a_pull_request_opened_in_the_second_of_the_request_is_found(
    github: GitHubServer, issue: Issue
) -> None:
    """GitHub's times have no fractions of a second."""
    forge_for(github).open_pull_request(report_on(issue), BRANCH)
    [pull] = pulls(github)
    asked_then = trigger_on(issue).model_copy(update={"at": pull.updated_at})
    assert forge_for(github).find_publication(asked_then) is not None
    asked_later = asked_then.model_copy(update={"at": pull.updated_at + timedelta(seconds=1)})
    assert forge_for(github).find_publication(asked_later) is None


def test_a_request_is_answered_once(github: GitHubServer, issue: Issue) -> None:
    asked = trigger_on(issue)
    for _ in range(2):
        forge_for(github).post_answer(asked, "It costs $1")
    [answer] = issue.comments
    assert "It costs $1" in answer.body
    other = asked.model_copy(update={"key": "another"})
    forge_for(github).post_answer(other, "It costs $1")
    assert len(issue.comments) == 2


@pytest.mark.attack
def test_a_marker_of_somebody_else_is_ignored(github: GitHubServer, issue: Issue) -> None:
    """Somebody forges markers of an ended run, a refusal, an answer and a pull request: the work is
    done all the same."""
    key = trigger_on(issue).key
    forged = run_marker(key, Ending.NO_CHANGE)
    github.add_comment(issue, forged + "\n\nI finished", "mallory")
    github.add_comment(issue, refusal_marker("alice"), "resolver")
    github.create_pull(NAME, BRANCH, "x", run_marker(key, Ending.PULL_REQUEST), author="mallory")
    forge = forge_for(github)
    assert forge.find_publication(trigger_on(issue)) is None
    forge.comment(report_on(issue))
    assert issue.comments[-1].author.login == BOT
    refused = Report(
        trigger=trigger_on(issue),
        run="r",
        failure=failure_from_error(Refused("alice may not", "ask")),
    )
    forge.comment(refused)
    assert "alice may not" in issue.comments[-1].body
    github.add_comment(issue, f"{answer_marker(key)}\n\nNo", "mallory")
    forge.post_answer(trigger_on(issue), "It costs $1")
    assert issue.comments[-1].author.login == BOT and "It costs $1" in issue.comments[-1].body


@pytest.mark.parametrize(
    ("permissions", "needed"),
    [
        ({"contents": "write", "issues": "write"}, "pull-requests: write"),
        ({"contents": "write", "pull_requests": "write"}, "issues: write"),
    ],
)
def test_a_missing_permission_is_named(
    github: GitHubServer, issue: Issue, permissions: dict[str, str], needed: str
) -> None:
    forge = forge_for(github, github.token_for(BOT, NAME, permissions=permissions))
    with pytest.raises(ForgeError) as caught:
        forge.open_pull_request(report_on(issue), BRANCH)
        forge.comment(report_on(issue))
    assert "403" in caught.value.what
    assert needed in caught.value.next_step
