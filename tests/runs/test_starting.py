"""Everything that can start work, through the Action's door: GitHub's payloads, a GitHub over real
sockets, and what a person sees in the end.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.events import Events, Payload
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scene
from tests.runs.test_reviews import comment, submit

BOT = "resolver-bot"


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scene]:
    yield Scene(github, command_line, model_endpoint)


@pytest.fixture
def events(scene: Scene) -> Events:
    return Events(scene.github, REPOSITORY)


def opened(scene: Scene, body: str, author: str = "mona") -> Issue:
    return scene.github.create_issue(REPOSITORY, "add() subtracts", body, author=author)


def is_done(scene: Scene, issue: Issue, done: Ended) -> None:
    """One pull request for the issue, and one comment of ours."""
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scene.pulls()
    assert f"Fixes #{issue.number}" in (pull.body or "")
    assert len([c for c in issue.comments if c.author.login == BOT]) == 1


def ignored(scene: Scene, done: Ended, why: str) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr
    assert why in " ".join(done.stdout.split())
    assert scene.outputs() == {"state": "ignored"}
    assert not scene.work_done()
    assert not [e for e in scene.github.writes() if "comments" in e.path]


def test_an_issue_that_mentions_us_is_worked_on(scene: Scene, events: Events) -> None:
    issue = opened(scene, "2 + 2 is 0. @agent please fix this")
    scene.endpoint.script(FIX, finish(SUMMARY))
    payload = events.subject(issue, "opened", "mona")
    is_done(scene, issue, scene.action(payload, "issues"))
    asked = str(scene.endpoint.requests[0].body)
    assert "2 + 2 is 0." in asked
    assert [r.content for r in issue.reactions] == ["eyes"]
    again = scene.action(payload, "issues")
    assert again.exit_code == 0
    assert len(scene.pulls()) == 1, "a redelivery did it again"


def test_an_issue_that_we_are_assigned_to_is_worked_on(scene: Scene, events: Events) -> None:
    """Our login is asked of GitHub: it is not in the settings."""
    scene.github.advance(60)
    scene.endpoint.script(FIX, finish(SUMMARY))
    payload = events.subject(scene.issue, "assigned", "mona", assignee=events.account(BOT))
    is_done(scene, scene.issue, scene.action(payload, "issues"))


def test_an_issue_that_somebody_else_is_assigned_to_is_not(scene: Scene, events: Events) -> None:
    payload = events.subject(scene.issue, "assigned", "mona", assignee=events.account("zoe"))
    ignored(scene, scene.action(payload, "issues"), "somebody else was assigned")


def test_a_dispatch_by_hand_is_worked_on_once_for_each_run_of_the_workflow(
    scene: Scene, events: Events
) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    payload = events.by_hand("mona", issue=str(scene.issue.number), instruction="fix the sign")
    is_done(scene, scene.issue, scene.action(payload, "workflow_dispatch"))
    assert "fix the sign" in str(scene.endpoint.requests[0].body)
    scene.github.advance(3600)
    again = scene.action(payload, "workflow_dispatch", GITHUB_RUN_ATTEMPT="2")
    is_done(scene, scene.issue, again)


def test_what_is_written_while_a_dispatch_waits_for_its_job_was_not_asked_for(
    scene: Scene, events: Events
) -> None:
    scene.github.add_comment(scene.issue, "It is in calc.py.", "zoe")
    scene.github.advance(60)
    asked = {"id": 77, "created_at": f"{scene.github.world.now():%Y-%m-%dT%H:%M:%SZ}"}
    payload = events.by_hand("mona", issue=str(scene.issue.number))
    scene.github.advance(60)
    scene.github.add_comment(scene.issue, "EVIL comment", "zoe")
    scene.github.edit_issue(scene.issue, title="EVIL title", body="EVIL text")
    scene.github.advance(60)
    scene.github.fail_next("GET", "/actions/runs/77$", 200, {}, asked)
    scene.endpoint.script(FIX, finish(SUMMARY))
    is_done(scene, scene.issue, scene.action(payload, "workflow_dispatch"))
    prompt = str(scene.endpoint.requests[0].body)
    assert "EVIL" not in prompt
    assert "add() subtracts" in prompt and "It is in calc.py." in prompt
    [told] = scene.bot_comments()
    assert "the issue's text, edited after the request" in told
    assert "a comment of zoe that was written after the request" in told


def test_a_dispatch_by_a_program_is_worked_on(scene: Scene, events: Events) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    payload = events.by_program("mona", issue=scene.issue.number)
    is_done(scene, scene.issue, scene.action(payload, "repository_dispatch"))


def test_a_dispatch_by_somebody_who_may_not_is_refused(scene: Scene, events: Events) -> None:
    payload = events.by_program("zoe", issue=scene.issue.number)
    done = scene.action(payload, "repository_dispatch")
    assert done.exit_code == 5
    assert not scene.work_done()
    [told] = scene.bot_comments()
    assert "zoe has no write access" in told


@pytest.mark.parametrize(
    ("name", "given"), [("schedule", {}), ("workflow_dispatch", {"issue": ""})]
)
def test_a_schedule_and_a_dispatch_that_names_nothing_sweep(
    scene: Scene, events: Events, name: str, given: dict[str, str]
) -> None:
    scene.github.add_label(scene.issue, "agent", "mona")
    scene.endpoint.script(FIX, finish(SUMMARY))
    payload = events.by_hand("mona", **given) if given else {"schedule": "17 3 * * *"}
    named = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true"}
    is_done(scene, scene.issue, scene.action(payload, name, **named))
    assert scene.outputs()["state"] == "finished"
    assert f"#{scene.issue.number}" in scene.summary()


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
    scene: Scene, events: Events, name: str, given: dict[str, Any], why: str
) -> None:
    scene.github.add_label(scene.issue, "agent", "mona")
    made = events.by_hand if name == "workflow_dispatch" else events.by_program
    named = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true"}
    done = scene.action(made("mona", **given), name, **named)
    assert done.exit_code == 2, done.stdout + done.stderr
    [error] = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert why in error
    assert "leave all inputs empty for a sweep" in error
    assert scene.outputs() == {"state": "error"}
    assert not scene.endpoint.requests
    assert not scene.work_done()


@pytest.fixture
def pull(scene: Scene) -> Issue:
    text = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a + b\n"
    scene.github.commit(REPOSITORY, "topic", {"calc.py": text})
    return scene.github.create_pull(REPOSITORY, "topic", "Add sub", "@agent review", author="mona")


def asked_for_review(events: Events, pull: Issue) -> Payload:
    requested = {"requested_reviewer": events.account(BOT)}
    return events.subject(pull, "review_requested", "mona", **requested)


@pytest.mark.parametrize("way", ["opened", "review_requested"])
def test_a_pull_request_is_reviewed_that_asks_for_it(
    scene: Scene, events: Events, pull: Issue, way: str
) -> None:
    scene.endpoint.script(comment(6, "Name it."), submit())
    payload = (
        events.subject(pull, "opened", "mona")
        if way == "opened"
        else asked_for_review(events, pull)
    )
    done = scene.action(payload, "pull_request")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len([r for r in pull.reviews if r.author.login == BOT]) == 1


def test_a_pull_request_is_reviewed_whose_review_a_team_of_ours_is_asked_for(
    scene: Scene, events: Events, pull: Issue
) -> None:
    scene.endpoint.script(comment(6, "Name it."), submit())
    payload = asked_for_review(events, pull) | {"requested_team": {"name": "Core", "slug": "core"}}
    del payload["requested_reviewer"]
    done = scene.action(payload, "pull_request", RESOLVER_REVIEW_TEAMS="core")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert len([r for r in pull.reviews if r.author.login == BOT]) == 1


def test_a_review_that_was_told_of_is_not_done_again_for_its_other_comments(
    scene: Scene, events: Events, pull: Issue
) -> None:
    """Each comment of a review is an event, which starts a job; the first one failed here."""
    github = scene.github
    on_code = github.add_review_comment(pull, "calc.py", 6, "@agent rename it", "mona")
    payload = github.event_review_comment(on_code)
    first = scene.action(payload, "pull_request_review_comment")
    assert first.exit_code == 1, "the model has no answer"
    told = [c for c in pull.comments if c.author.login == BOT]
    asked = len(scene.endpoint.requests)
    payload["comment"]["id"] += 1
    second = scene.action(payload, "pull_request_review_comment")
    assert second.exit_code == 0
    assert scene.outputs() == {"state": "ignored"}
    assert len(scene.endpoint.requests) == asked
    assert len([c for c in pull.comments if c.author.login == BOT]) == len(told) == 1


def test_a_refusal_can_be_silent(scene: Scene, events: Events) -> None:
    issue = opened(scene, "@agent please fix this", author="eve")
    payload = events.subject(issue, "opened", "eve")
    done = scene.action(payload, "issues", RESOLVER_REFUSALS="silent")
    assert done.exit_code == 5
    assert "eve has no write access" in done.stdout
    assert "no write access" in scene.summary()
    assert issue.comments == []
    assert issue.reactions == []
    assert not scene.work_done()


def test_a_member_of_an_allowed_team_starts_work(scene: Scene, events: Events) -> None:
    scene.github.add_member("octo/core", "carol")
    issue = opened(scene, "@agent please fix this", author="carol")
    scene.endpoint.script(FIX, finish(SUMMARY))
    payload = events.subject(issue, "opened", "carol")
    done = scene.action(payload, "issues", RESOLVER_ALLOWED_TEAMS="octo/core")
    is_done(scene, issue, done)


def test_a_failing_check_starts_nothing_unless_it_is_wanted(scene: Scene, events: Events) -> None:
    payload = events.workflow_failed("main", "mona")
    ignored(scene, scene.action(payload, "workflow_run"), "fix_failing_checks")


def test_a_failing_check_of_the_default_branch_becomes_an_issue_and_its_fix(
    scene: Scene, events: Events
) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    wanted: dict[str, Any] = {"RESOLVER_FIX_FAILING_CHECKS": "all"}
    payload = events.workflow_failed("main", "mona")
    done = scene.action(payload, "workflow_run", **wanted)
    [issue] = [i for i in scene.repository.issues.values() if i.title == "CI fails on main"]
    is_done(scene, issue, done)
    asked = str(scene.endpoint.requests[0].body)
    assert "A failed check started it" in asked
    assert 'The check "CI" failed on main' in asked.replace("\\", "")
    assert "Started by | the failure of the check `CI`" in (scene.pulls()[0].body or "")
    asked = len(scene.endpoint.requests)
    scene.github.commit(REPOSITORY, "main", {"other.py": "y = 1\n"})
    later = scene.action(events.workflow_failed("main", "mona"), "workflow_run", **wanted)
    assert later.exit_code == 0
    assert "is open and fixes it" in " ".join(later.stdout.split())
    assert len(scene.endpoint.requests) == asked


def test_a_failing_check_of_our_own_pull_request_is_fixed_on_its_branch(
    scene: Scene, events: Events
) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    assert scene.resolve().exit_code == 0
    [pull] = scene.pulls()
    [branch] = scene.branches()
    before = scene.repository.git.tip(branch)
    scene.github.advance(60)
    scene.endpoint.script(bash("echo >> calc.py"), finish("Add a blank line\n\nThe linter asks."))
    payload = events.suite_failed(branch, BOT)
    done = scene.action(payload, "check_suite", RESOLVER_FIX_FAILING_CHECKS="own")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert scene.branches() == [branch]
    assert scene.repository.git.tip(branch) != before
    assert scene.pulls() == [pull]
    message = scene.repository.git.text("log", "-1", "--format=%B", branch)
    assert "Co-authored-by" not in message, "nobody has asked for it"
    assert len([c for c in pull.comments if c.author.login == BOT]) == 1
