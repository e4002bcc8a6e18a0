"""Tests of the step that closes the comment of a killed run, with a GitHub over a real socket."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.config.settings import load_settings
from resolver.entrypoints.action import actions_run, event_from_environment
from resolver.github.comments.progress import RunProgress
from resolver.models.run import Trigger
from resolver.runs.common import open_host
from tests.github import reports
from tests.github.test_github_comments import NOW, bodies
from tests.github.test_github_reading import BOT, NAME, forge_for, issue
from tests.parts.events import Events, Payload
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

__all__ = ["issue"]


class Workflow:
    """Jobs of one workflow run, all with the same event."""

    def __init__(
        self, github: GitHubServer, folder: Path, name: str, event: Payload, **environment: str
    ) -> None:
        self._github = github
        path = folder / "event.json"
        path.write_text(json.dumps(event))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GITHUB_TOKEN": github.token_for(BOT, NAME),
            **github.addresses,
            "GITHUB_REPOSITORY": NAME,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_RUN_ID": "123",
            "GITHUB_RUN_ATTEMPT": "2",
            "RESOLVER_PACE": '{"write_interval": 0}',
            **environment,
        }

    def leave_comment(self, trigger: Trigger | None = None) -> Trigger:
        """Write the comment that a run of the first job has when it is killed. Return its request.

        trigger: the run's request. None for the one that the event makes.
        """
        environment = self._environment
        if trigger is None:
            settings, host = load_settings({}, environment), open_host(environment)
            found = event_from_environment(settings, environment, host)
            assert isinstance(found, Trigger)
            trigger = found
        left = RunProgress(
            trigger=trigger,
            run="20260102-030405-abcdef",
            since=NOW,
            until=NOW,
            job=actions_run(environment),
        )
        forge_for(self._github).progress_writer().write_progress(left, None)
        return trigger

    def close(self, *command: str, **environment: str) -> int:
        """Return the exit code of the closing step in a job with these variables."""
        return run(list(command or ("close",)), self._environment | environment)


@pytest.fixture
def workflow(github: GitHubServer, issue: Issue, tmp_path: Path) -> Workflow:
    event = github.event_issue_comment(github.add_comment(issue, "@agent fix it", "alice"))
    return Workflow(github, tmp_path, "issue_comment", event)


@pytest.mark.parametrize(
    ("command", "job"),
    [
        ("close", {}),
        ("action", {"INPUT_CLOSE": "true", "INPUT_MAX_BUDGET": "a lot"}),
    ],
    ids=["a later job", "a step of the same job"],
)
def test_the_closing_step_says_once_that_a_killed_run_died(
    workflow: Workflow,
    issue: Issue,
    command: str,
    job: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    workflow.leave_comment()
    assert workflow.close(command, **job, GITHUB_RUN_ID="124") == 0, "another workflow run"
    assert "Nothing to close" in capsys.readouterr().out
    assert workflow.close(command, **job) == 0
    assert "Its comment was completed" in capsys.readouterr().out
    [comment] = bodies(issue)
    for words in ("**ended unexpectedly**", "ending=died -->", "/actions/runs/123"):
        assert words in comment
    assert workflow.close(command, **job) == 0
    assert "Nothing to close" in capsys.readouterr().out
    assert bodies(issue) == [comment]


def test_the_comment_of_a_run_that_opened_its_pull_request_becomes_the_result(
    workflow: Workflow, github: GitHubServer, issue: Issue
) -> None:
    """The run was killed at its end, or GitHub took no final comment."""
    trigger = workflow.leave_comment()
    github.commit(NAME, "agent/it-breaks", {"a.py": "fixed"})
    report = reports.report(trigger=trigger)
    pull = forge_for(github).open_pull_request(report, "agent/it-breaks")
    assert workflow.close() == 0
    [comment] = bodies(issue)
    assert "ending=pull_request -->" in comment
    assert f"Resolver opened [#{pull.number}]" in comment


@pytest.mark.parametrize("is_killed_at_work", [True, False])
def test_a_run_on_a_failing_check_is_found_by_its_issue_and_none_is_opened_for_it(
    github: GitHubServer, issue: Issue, tmp_path: Path, is_killed_at_work: bool
) -> None:
    event = Events(github, NAME).workflow_failed("main", "alice")
    wanted = {"INPUT_FIX-FAILING-CHECKS": "all"}
    workflow = Workflow(github, tmp_path, "workflow_run", event, **wanted)
    if is_killed_at_work:
        workflow.leave_comment()
    assert workflow.close() == 0
    _, *opened = github.repository(NAME).issues.values()
    comments: list[Any] = [bodies(issue_of_check) for issue_of_check in opened]
    assert len(comments) == is_killed_at_work
    assert all("ending=died -->" in comment for [comment] in comments)


def test_a_killed_sweep_is_found_by_the_label_of_its_issues(
    github: GitHubServer, issue: Issue, tmp_path: Path
) -> None:
    other = github.create_issue(NAME, "It is slow", "", author="alice")
    for labeled in (other, issue):
        github.add_label(labeled, "agent", "alice")
    event = {"schedule": "17 3 * * *"}
    workflow = Workflow(github, tmp_path, "schedule", event, GITHUB_ACTIONS="true")
    workflow.leave_comment(reports.trigger(repository=NAME, number=other.number))
    assert workflow.close() == 0
    [comment] = bodies(other)
    assert "ending=died -->" in comment
    assert bodies(issue) == []
