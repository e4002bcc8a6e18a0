"""The request that a job of the Action gets from its event, asked of a GitHub over a real socket.

`tests/github/events` has what the payload alone decides, `tests/conversation/test_placing.py` where
a dispatch and a failing check are worked on.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.entrypoints.action import event_from_environment, read_event
from resolver.errors import UsageError
from resolver.github.events.permission import IgnoredEvent
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import Trigger
from resolver.runs.wiring.sandbox import RunHost
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.runs.scenario import REPOSITORY

BOT = "resolver-bot"
Job = Callable[..., Trigger | IgnoredEvent]


@pytest.fixture
def events(github: GitHubServer) -> Events:
    github.create_repository(REPOSITORY, {"calc.py": "1\n"})
    for login in ("mona", BOT):
        github.add_user(login)
        github.grant(login, REPOSITORY, "write")
    return Events(github, REPOSITORY)


@pytest.fixture
def job(github: GitHubServer, events: Events, tmp_path: Path) -> Job:
    """Returns what the job of an event is asked to do. Its other arguments are variables of its
    environment."""

    def read(payload: dict[str, Any], name: str, **more: str) -> Trigger | IgnoredEvent:
        path = tmp_path / "event.json"
        path.write_text(json.dumps(payload))
        environment = {
            "GITHUB_TOKEN": github.token_for(BOT, REPOSITORY),
            **github.addresses,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_RUN_ID": "77",
            **more,
        }
        host = RunHost(environment=environment, cache=tmp_path / "cache")
        return event_from_environment(load_settings({}, environment), environment, host)

    return read


@pytest.fixture
def issue(github: GitHubServer, events: Events) -> Issue:
    return github.create_issue(REPOSITORY, "add() subtracts", author="zoe")


@pytest.mark.parametrize(("name", "made"), [
    ("workflow_dispatch", lambda events, number: events.by_hand("mona", issue=str(number))),
    ("repository_dispatch", lambda events, number: events.by_program("mona", issue=number)),
])  # fmt: skip
def test_a_dispatch_was_made_when_its_workflow_run_was_created(
    github: GitHubServer, events: Events, issue: Issue, job: Job, name: str, made: Any
) -> None:
    payload = made(events, issue.number)
    started = job(payload, name)
    assert isinstance(started, Trigger) and started.number == issue.number, "its time is unknown"
    asked = started.at - timedelta(hours=3)
    for created, expected in ((asked, asked), (started.at + timedelta(hours=1), None)):
        github.fail_next("GET", "/actions/runs/77$", 200, {}, {"created_at": created.isoformat()})
        found = job(payload, name)
        assert isinstance(found, Trigger)
        assert found.at == expected or (expected is None and started.at <= found.at < created)


def test_the_attempts_of_a_workflow_run_are_one_request(
    events: Events, issue: Issue, job: Job
) -> None:
    payload = events.by_hand("mona", issue=str(issue.number), instruction="fix the sign")
    first, again, other = (
        job(payload, "workflow_dispatch", **run)
        for run in ({}, {"GITHUB_RUN_ATTEMPT": "2"}, {"GITHUB_RUN_ID": "78"})
    )
    assert isinstance(first, Trigger) and isinstance(again, Trigger) and isinstance(other, Trigger)
    assert first.instruction == "fix the sign"
    assert first.key == again.key != other.key


def test_a_review_that_a_run_has_handled_is_not_handled_for_its_other_events(
    github: GitHubServer, events: Events, job: Job
) -> None:
    github.commit(REPOSITORY, "topic", {"calc.py": "1\n2\n"})
    pull = github.create_pull(REPOSITORY, "topic", "Add 2", "@agent review", author="mona")
    on_code = github.add_review_comment(pull, "calc.py", 2, "@agent make it 3", "mona")
    payload, name = events.review_comment(on_code), "pull_request_review_comment"
    first = job(payload, name)
    assert isinstance(first, Trigger) and first.review_id is not None
    github.add_comment(pull, f"{run_marker(first.key, Ending.ERROR)}\n\nIt failed.", BOT)
    payload["comment"]["id"] += 1
    assert isinstance(job(payload, name), IgnoredEvent)
    again = job(payload, name, GITHUB_RUN_ATTEMPT="2")
    assert isinstance(again, Trigger) and again.key == first.key, "a person re-runs its job"


def read(path: object) -> object:
    return read_event({"GITHUB_EVENT_NAME": "issues", "GITHUB_EVENT_PATH": str(path)})


@pytest.mark.parametrize("text", ["{", "[1]", '{"a":' * 100_000])
def test_a_file_that_is_no_event_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "event.json"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        read(path)
    assert f"the event {path} is not a JSON object" in raised.value.what


def test_a_file_that_is_missing_and_a_place_outside_of_a_job_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", "a\0b"):
        with pytest.raises(UsageError, match="can't be read"):
            read(path)
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH are not set"):
        read_event({})
