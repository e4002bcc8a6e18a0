"""Runs started by GitHub's published payloads, through the entry point of the Action.

These are comments, reviews, labels, assignments and checks; the other events are in
`test_starting.py`. Whole runs, because what is refused or ignored must leave nothing on GitHub.
"""

import pytest

from resolver.config.settings import Settings
from resolver.models.run import Trigger
from resolver.runs.common import trigger_for_target
from tests.parts.events import Events
from tests.parts.github_server.state import Issue
from tests.parts.runs import bash
from tests.runs.test_github import REPOSITORY, Scenario
from tests.runs.test_starting import BOT, events, scenario

__all__ = ["events", "scenario"]

NOTE = bash("echo '# x' >> calc.py")


@pytest.fixture
def pull(scenario: Scenario) -> Issue:
    scenario.github.commit(
        REPOSITORY, "topic", {"calc.py": "def add(a, b):\n    return a - b\n\n\n"}
    )
    made = scenario.github.create_pull(REPOSITORY, "topic", "Tidy up", "Lines.", author="mona")
    scenario.github.advance(60)
    return made


def test_each_published_event_is_a_request_about_its_subject(
    scenario: Scenario, events: Events, pull: Issue
) -> None:
    """What a run does with such a request is in the whole runs here, in test_github.py and in
    test_rounds.py."""
    github, label, bot = scenario.github, {"name": "agent"}, events.account(BOT)
    review = github.add_review(pull, "@agent add a note", "mona", "CHANGES_REQUESTED")
    on_code = github.add_review_comment(pull, "calc.py", 3, "@agent add a note", "mona")
    for name, payload, subject in (
        ("issue_comment", events.comment(scenario.mention()), scenario.issue),
        ("issues", events.subject(scenario.issue, "labeled", "mona", label=label), scenario.issue),
        ("pull_request", events.subject(pull, "labeled", "mona", label=label), pull),
        ("pull_request", events.subject(pull, "assigned", "mona", assignee=bot), pull),
        ("pull_request_review", events.review(review), pull),
        ("pull_request_review_comment", events.review_comment(on_code), pull),
    ):
        found = trigger_for_target(Settings(), name, payload, own_login=BOT)
        assert isinstance(found, Trigger), (name, found)
        assert (found.number, found.actor.login) == (subject.number, "mona"), name
        assert found.is_pull_request is (subject is pull), name
    for name, payload, check in (
        ("check_run", events.check_run_failed("main", "mona"), "ci/circleci"),
        ("status", events.status_failed("main", "mona"), "ci/jenkins"),
    ):
        found = trigger_for_target(Settings(fix_failing_checks="all"), name, payload)
        assert isinstance(found, Trigger) and check in str(found.check), name
