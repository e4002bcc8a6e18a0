"""A question about the code, from the request to the answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout
from tests.runs.test_github import FILES, FIX, REPOSITORY, Scenario

ANSWER = "Because `calc.py:2` subtracts; calc.py:99 is not there."
QUESTION = "@agent why does add() subtract?"


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    return Scenario(github, command_line, model_endpoint)


def test_a_question_is_answered_in_one_comment_with_links(scenario: Scenario) -> None:
    scenario.endpoint.script(FIX, finish(ANSWER))
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention(text=QUESTION)))
    assert done.exit_code == 0, done.stdout + done.stderr
    base = done.outcome["base"]
    [comment] = scenario.bot_comments()
    page = f"{scenario.github.server_url}/{REPOSITORY}/blob/{base}/calc.py#L2"
    assert f"[`calc.py:2`](<{page}>) subtracts; calc.py:99 is" in comment
    assert (scenario.branches(), scenario.pulls(), done.outcome["files"]) == ([], [], [])
    assert done.outcome["state"] == "finished"
    assert "You answer a question" in str(scenario.endpoint.requests[0].body)


def test_the_same_question_delivered_again_is_not_asked_again(scenario: Scenario) -> None:
    scenario.endpoint.script(finish(ANSWER))
    event = scenario.github.event_issue_comment(scenario.mention(text=QUESTION))
    ends = [scenario.action(event).exit_code for _ in range(2)]
    assert (ends, len(scenario.endpoint.requests), len(scenario.bot_comments())) == ([0, 0], 1, 1)


def test_a_strangers_question_is_refused(scenario: Scenario) -> None:
    scenario.github.add_user("eve")
    event = scenario.github.event_issue_comment(scenario.mention("eve", QUESTION))
    assert scenario.action(event).exit_code != 0
    assert not scenario.work_done()


def test_on_a_local_checkout_the_answer_is_printed(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(bash("rm README.md"), finish(ANSWER))
    done = command_line.resolve(
        checkout, "--agent", "ReadOnlyAgent", issue="# Why does add() subtract?"
    )
    assert done.exit_code == 0, done.stderr
    assert ANSWER in done.stderr
    assert done.outcome["message"] == ANSWER
    assert done.outcome["branch"] is None
    assert git(checkout, "branch", "--list", "agent/*") == ""
