"""`@agent help` in an Action's job: one comment, and no run."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine
from tests.runs.test_agents import AGENTS
from tests.runs.test_github import REPOSITORY, Scene


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scene]:
    yield Scene(github, command_line, model_endpoint)


def test_help_says_what_can_be_asked_and_starts_no_run(scene: Scene) -> None:
    shout = "---\ndescription: Tells @octo/everyone, see #1 | now, `a|b`.\n---\nDo it.\n"
    task = "---\ndescription: Changes the version.\ntriggers: [/bump]\n---\nBump it.\n"
    word = "---\ndescription: Knows.\ntriggers: [database]\n---\nKnow it.\n"
    files = {
        **AGENTS,
        ".agents/agents/shout.md": shout,
        ".agents/agents/bad.md": "no head",
        ".agents/skills/version/SKILL.md": task,
        ".openhands/microagents/database.md": word,
    }
    scene.github.commit(REPOSITORY, "main", files, "Bring agents")
    event = scene.github.event_issue_comment(scene.mention(text="@agent help"))
    done = [scene.action(event) for _ in range(2)]
    assert [each.exit_code for each in done] == [0, 0], done[0].stderr
    [comment] = scene.bot_comments()
    for words in (
        "`@agent please fix this`", "`@agent stop`", "`@agent review`", "Adding the label `agent`",
        "| `/release-notes` | Writes the release notes of a version. |",
        "| `/counter` | Counts functions. |", "| `/ReadOnlyAgent` |", "everyone",
        "| `/version` | Changes the version. |", "| `/bump` |",
    ):  # fmt: skip
        assert words in comment
    assert "`@octo/everyone`" in comment  # nobody is notified
    assert all(line.count(" | ") == 1 for line in comment.splitlines() if "`/shout`" in line)
    assert "bad" not in comment and "database" not in comment
    assert not scene.work_done()
    assert not (done[0].output / "events.jsonl").exists()
    assert scene.outputs() == {"state": "help"}


@pytest.mark.parametrize("text", ["@agent ?", "@agent /help please"])
def test_a_question_mark_and_a_slash_ask_for_it_too(scene: Scene, text: str) -> None:
    assert scene.action(scene.github.event_issue_comment(scene.mention(text=text))).exit_code == 0
    [comment] = scene.bot_comments()
    assert "People with write access can ask Resolver" in comment
    assert not scene.work_done()


def test_a_stranger_is_refused_once(scene: Scene) -> None:
    scene.github.add_user("eve")
    for _ in range(2):
        event = scene.github.event_issue_comment(scene.mention("eve", "@agent help"))
        assert scene.action(event).exit_code == 5
    [comment] = scene.bot_comments()
    assert "write access" in comment and "People with write access can ask Resolver" not in comment


def test_help_is_given_where_the_agents_can_not_be_read(scene: Scene) -> None:
    missing = {"message": "Resource not accessible by integration"}
    scene.github.fail_next("GET", "/contents/", status=403, body=missing, times=9)
    event = scene.github.event_issue_comment(scene.mention(text="@agent help"))
    assert scene.action(event).exit_code == 0
    assert "`/CodeActAgent`" in scene.bot_comments()[0]
