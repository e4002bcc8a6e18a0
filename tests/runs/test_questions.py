"""A question about the code, from the request to the answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout
from tests.runs.test_github import FILES, FIX, REPOSITORY, Scene

ANSWER = "Because `calc.py:2` subtracts; calc.py:99 is not there."
QUESTION = "@agent why does add() subtract?"


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scene]:
    return Scene(github, command_line, model_endpoint)


def test_a_question_is_answered_in_one_comment_with_links(scene: Scene) -> None:
    scene.endpoint.script(FIX, finish(ANSWER))
    done = scene.action(scene.github.event_issue_comment(scene.mention(text=QUESTION)))
    assert done.exit_code == 0, done.stdout + done.stderr
    base = done.outcome["base"]
    [comment] = scene.bot_comments()
    page = f"{scene.github.server_url}/{REPOSITORY}/blob/{base}/calc.py#L2"
    assert f"[`calc.py:2`](<{page}>) subtracts; calc.py:99 is" in comment
    assert (scene.branches(), scene.pulls(), done.outcome["files"]) == ([], [], [])
    assert done.outcome["state"] == "finished"
    assert "You answer a question" in str(scene.endpoint.requests[0].body)


def test_the_same_question_delivered_again_is_not_asked_again(scene: Scene) -> None:
    scene.endpoint.script(finish(ANSWER))
    event = scene.github.event_issue_comment(scene.mention(text=QUESTION))
    ends = [scene.action(event).exit_code for _ in range(2)]
    assert (ends, len(scene.endpoint.requests), len(scene.bot_comments())) == ([0, 0], 1, 1)


def test_a_strangers_question_is_refused(scene: Scene) -> None:
    scene.github.add_user("eve")
    event = scene.github.event_issue_comment(scene.mention("eve", QUESTION))
    assert scene.action(event).exit_code != 0
    assert not scene.work_done()


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
