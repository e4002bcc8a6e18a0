"""A question about the code, from the request to the answer."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, finish
from tests.runs.test_github import FIX, REPOSITORY, Scenario

ANSWER = "Because `calc.py:2` subtracts; calc.py:99 is not there."
QUESTION = "@agent why does add() subtract?"


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    return Scenario(github, command_line, model_endpoint)


def test_a_question_is_answered_once_in_one_comment_with_links(scenario: Scenario) -> None:
    """A whole run, because what the agent changes for an answer may reach nobody, and its
    second delivery finds the comment of the first."""
    scenario.endpoint.script(FIX, finish(ANSWER))
    event = scenario.github.event_issue_comment(scenario.mention(text=QUESTION))
    done = scenario.action(event)
    assert done.exit_code == 0, done.stdout + done.stderr
    base = done.outcome["base"]
    [comment] = scenario.bot_comments()
    page = f"{scenario.github.server_url}/{REPOSITORY}/blob/{base}/calc.py#L2"
    assert f"[`calc.py:2`](<{page}>) subtracts; calc.py:99 is" in comment
    assert (scenario.branches(), scenario.pulls(), done.outcome["files"]) == ([], [], [])
    assert done.outcome["state"] == "finished"
    assert "You answer a question" in str(scenario.endpoint.requests[0].body)
    again = scenario.action(event)
    assert again.exit_code == 0, again.stdout + again.stderr
    assert (len(scenario.endpoint.requests), len(scenario.bot_comments())) == (2, 1)


def test_a_strangers_question_is_refused(scenario: Scenario) -> None:
    """A whole run, because no stage of it may begin to work."""
    scenario.github.add_user("eve")
    event = scenario.github.event_issue_comment(scenario.mention("eve", QUESTION))
    assert scenario.action(event).exit_code != 0
    assert not scenario.work_done()
