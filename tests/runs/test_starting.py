"""Every event that can start work, through the entry point of the Action.

GitHub's payloads, a GitHub over real sockets, and what people see in the end.

Whole runs, because the payload of each event decides what is read, where the answer goes and what a
redelivery finds; `tests/github/events` has everything that the payload alone decides.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scenario

BOT = "resolver-bot"


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    yield Scenario(github, command_line, model_endpoint)


@pytest.fixture
def events(scenario: Scenario) -> Events:
    return Events(scenario.github, REPOSITORY)


def opened(scenario: Scenario, body: str, author: str = "mona") -> Issue:
    return scenario.github.create_issue(REPOSITORY, "add() subtracts", body, author=author)


def is_done(scenario: Scenario, issue: Issue, done: Ended) -> None:
    """One pull request for the issue, and one comment of ours."""
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scenario.pulls()
    assert f"Fixes #{issue.number}" in (pull.body or "")
    assert len([c for c in issue.comments if c.author.login == BOT]) == 1


def ignored(scenario: Scenario, done: Ended, why: str) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr
    assert why in " ".join(done.stdout.split())
    assert scenario.outputs() == {"state": "ignored"}
    assert not scenario.work_done()
    assert not [e for e in scenario.github.writes() if "comments" in e.path]


def test_an_issue_of_a_member_of_an_allowed_team_that_mentions_us_is_worked_on(
    scenario: Scenario, events: Events
) -> None:
    """A whole run, because who may ask is asked of GitHub, and a redelivery has to find it."""
    scenario.github.add_member("octo/core", "carol")
    issue = opened(scenario, "2 + 2 is 0. @agent please fix this", author="carol")
    scenario.endpoint.script(FIX, finish(SUMMARY))
    payload = events.subject(issue, "opened", "carol")
    allowed = {"RESOLVER_ALLOWED_TEAMS": "octo/core"}
    is_done(scenario, issue, scenario.action(payload, "issues", **allowed))
    asked = str(scenario.endpoint.requests[0].body)
    assert "2 + 2 is 0." in asked
    assert [r.content for r in issue.reactions] == ["eyes"]
    again = scenario.action(payload, "issues", **allowed)
    assert again.exit_code == 0
    assert len(scenario.pulls()) == 1, "a redelivery did it again"


def test_an_issue_that_somebody_else_is_assigned_to_is_not(
    scenario: Scenario, events: Events
) -> None:
    payload = events.subject(scenario.issue, "assigned", "mona", assignee=events.account("zoe"))
    ignored(scenario, scenario.action(payload, "issues"), "somebody else was assigned")


def test_a_dispatch_by_hand_is_worked_on_once_for_each_run_of_the_workflow(
    scenario: Scenario, events: Events
) -> None:
    """Whole runs, because the second attempt of the workflow finds what the first has published."""
    scenario.endpoint.script(FIX, finish(SUMMARY))
    payload = events.by_hand("mona", issue=str(scenario.issue.number), instruction="fix the sign")
    is_done(scenario, scenario.issue, scenario.action(payload, "workflow_dispatch"))
    assert "fix the sign" in str(scenario.endpoint.requests[0].body)
    scenario.github.advance(3600)
    again = scenario.action(payload, "workflow_dispatch", GITHUB_RUN_ATTEMPT="2")
    is_done(scenario, scenario.issue, again)


def test_what_is_written_while_a_dispatch_waits_for_its_job_was_not_asked_for(
    scenario: Scenario, events: Events
) -> None:
    """A whole run, because no stage of it may use what was written after the request."""
    scenario.github.add_comment(scenario.issue, "It is in calc.py.", "zoe")
    scenario.github.advance(60)
    asked = {"id": 77, "created_at": f"{scenario.github.world.now():%Y-%m-%dT%H:%M:%SZ}"}
    payload = events.by_hand("mona", issue=str(scenario.issue.number))
    scenario.github.advance(60)
    scenario.github.add_comment(scenario.issue, "EVIL comment", "zoe")
    scenario.github.edit_issue(scenario.issue, title="EVIL title", body="EVIL text")
    scenario.github.commit(REPOSITORY, "main", {"later.py": "x = 1\n"}, "Add later.py")
    scenario.github.advance(60)
    scenario.github.fail_next("GET", "/actions/runs/77$", 200, {}, asked)
    scenario.endpoint.script(FIX, finish(SUMMARY))
    is_done(scenario, scenario.issue, scenario.action(payload, "workflow_dispatch"))
    prompt = str(scenario.endpoint.requests[0].body)
    assert "EVIL" not in prompt
    assert "add() subtracts" in prompt and "It is in calc.py." in prompt
    [pull] = scenario.pulls()
    assert "the issue's text, edited after the request" in pull.body
    assert "a comment of zoe that was written after the request" in pull.body
    assert ", made after the request; the " in pull.body


def test_a_dispatch_by_somebody_who_may_not_is_refused(scenario: Scenario, events: Events) -> None:
    payload = events.by_program("zoe", issue=scenario.issue.number)
    done = scenario.action(payload, "repository_dispatch")
    assert done.exit_code == 5
    assert scenario.outputs()["state"] == "refused"
    assert "::error title=Resolver::zoe has no write access" in done.stdout
    assert "zoe has no write access" in scenario.summary()
    assert not scenario.work_done()
    assert not [request for request in scenario.github.requests if request.kind == "git"]
    [comment] = scenario.bot_comments()
    assert "zoe has no write access" in comment


def test_a_dispatch_that_names_nothing_sweeps(scenario: Scenario, events: Events) -> None:
    """A whole run, because a sweep has its own outputs; test_dispatch.py has the schedule."""
    scenario.github.add_label(scenario.issue, "agent", "mona")
    scenario.endpoint.script(FIX, finish(SUMMARY))
    payload = events.by_hand("mona", issue="")
    named = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true"}
    done = scenario.action(payload, "workflow_dispatch", **named)
    is_done(scenario, scenario.issue, done)
    assert scenario.outputs()["state"] == "finished"
    assert f"#{scenario.issue.number}" in scenario.summary()


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("repository_dispatch", {"issue": {"number": 1}}, "`issue` is not an issue number"),
        ("repository_dispatch", {"isue": "1"}, "names no `issue`, but sets 'isue'"),
        ("repository_dispatch", {"issue": None}, "`issue` is not an issue number"),
        ("workflow_dispatch", {"issue": "abc"}, "`issue` is not an issue number: 'abc'"),
        ("workflow_dispatch", {"issue": "", "instruction": "fix"}, "sets 'instruction'"),
    ],
)
def test_a_dispatch_with_a_mistake_is_an_error_and_costs_nothing(
    scenario: Scenario, events: Events, name: str, given: dict[str, Any], why: str
) -> None:
    scenario.github.add_label(scenario.issue, "agent", "mona")
    made = events.by_hand if name == "workflow_dispatch" else events.by_program
    named = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true"}
    done = scenario.action(made("mona", **given), name, **named)
    assert done.exit_code == 2, done.stdout + done.stderr
    [error] = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert why in error
    assert "leave all inputs empty for a sweep" in error
    assert scenario.outputs() == {"state": "error"}
    assert not scenario.endpoint.requests
    assert not scenario.work_done()


@pytest.fixture
def pull(scenario: Scenario) -> Issue:
    text = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a + b\n"
    scenario.github.commit(REPOSITORY, "topic", {"calc.py": text})
    return scenario.github.create_pull(
        REPOSITORY, "topic", "Add sub", "@agent review", author="mona"
    )


def test_a_review_with_a_comment_of_ours_is_not_handled_again_for_its_other_comments(
    scenario: Scenario, events: Events, pull: Issue
) -> None:
    """Each comment of a review is an event, which starts a job; the first one failed here."""
    github = scenario.github
    on_code = github.add_review_comment(pull, "calc.py", 6, "@agent rename it", "mona")
    payload = github.event_review_comment(on_code)
    first = scenario.action(payload, "pull_request_review_comment")
    assert first.exit_code == 1, "the model has no answer"
    comments = [c for c in pull.comments if c.author.login == BOT]
    asked = len(scenario.endpoint.requests)
    payload["comment"]["id"] += 1
    second = scenario.action(payload, "pull_request_review_comment")
    assert second.exit_code == 0
    assert scenario.outputs() == {"state": "ignored"}
    assert len(scenario.endpoint.requests) == asked
    assert len([c for c in pull.comments if c.author.login == BOT]) == len(comments) == 1


@pytest.mark.nightly
def test_a_refusal_can_be_silent(scenario: Scenario, events: Events) -> None:
    issue = opened(scenario, "@agent please fix this", author="eve")
    payload = events.subject(issue, "opened", "eve")
    done = scenario.action(payload, "issues", RESOLVER_REFUSALS="silent")
    assert done.exit_code == 5
    assert "eve has no write access" in done.stdout
    assert "no write access" in scenario.summary()
    assert issue.comments == []
    assert issue.reactions == []
    assert not scenario.work_done()


def test_a_failing_check_starts_nothing_unless_it_is_wanted(
    scenario: Scenario, events: Events
) -> None:
    payload = events.workflow_failed("main", "mona")
    ignored(scenario, scenario.action(payload, "workflow_run"), "fix_failing_checks")


def test_a_failing_check_of_the_default_branch_becomes_an_issue_and_its_fix(
    scenario: Scenario, events: Events
) -> None:
    """Whole runs: the story of a failed check, whose second failure finds the fix of the first."""
    scenario.endpoint.script(FIX, finish(SUMMARY))
    wanted: dict[str, Any] = {"RESOLVER_FIX_FAILING_CHECKS": "all"}
    payload = events.workflow_failed("main", "mona")
    done = scenario.action(payload, "workflow_run", **wanted)
    [issue] = [i for i in scenario.repository.issues.values() if i.title == "CI fails on main"]
    is_done(scenario, issue, done)
    asked = str(scenario.endpoint.requests[0].body)
    assert "A failed check started it" in asked
    assert 'The check "CI" failed on main' in asked.replace("\\", "")
    assert "Started by | the failure of the check `CI`" in (scenario.pulls()[0].body or "")
    asked = len(scenario.endpoint.requests)
    scenario.github.commit(REPOSITORY, "main", {"other.py": "y = 1\n"})
    later = scenario.action(events.workflow_failed("main", "mona"), "workflow_run", **wanted)
    assert later.exit_code == 0
    assert "is open and fixes it" in " ".join(later.stdout.split())
    assert len(scenario.endpoint.requests) == asked
