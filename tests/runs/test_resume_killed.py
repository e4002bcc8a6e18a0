"""Runs that are killed (SIGKILL) at any moment and resumed: nothing is done twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from resolver.events.lifecycle import CheckExecuted, ModelReplied, Resumed
from resolver.events.stores import JsonlStore
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.killer import Killer
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_calls
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout

REPOSITORY = "octo/calc"
TEST = """\
import unittest

import calc


class CalcTest(unittest.TestCase):
    def test_zero(self):
        self.assertEqual(calc.add(2, 0), 2)

    def test_add(self):
        self.assertEqual(calc.add(2, 2), 4)
"""
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "README.md": "# calc\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": TEST,
}
EDIT = {"path": "calc.py", "old_str": "a - b", "new_str": "a + b"}
SCRIPT = [
    bash("export TIMES=twice; echo one >> count.txt; cat calc.py"),
    tool_calls([
        ("execute_bash", {"command": 'echo "two $TIMES" >> count.txt; cd /; pwd'}),
        ("str_replace_editor", {"command": "str_replace", **EDIT}),
        ("str_replace_editor", {"command": "view", "path": "calc.py"}),
    ]),
    bash('echo "three $TIMES" >> "$OLDPWD/count.txt"'),
    finish("Make add add"),
]  # fmt: skip
"""Each command leaves a line in the change, and the later ones need the shell of the first."""

KILLED = -9


def next_answer(body: dict[str, Any]) -> Answer:
    """The reply by what the conversation has so far: the same however often it is asked for."""
    return SCRIPT[sum(message["role"] == "assistant" for message in body["messages"])]


@pytest.fixture
def killer(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    tmp_path: Path,
) -> Killer:
    model_endpoint.answer_with(next_answer)
    return Killer(tmp_path, command_line.environment)


def read(output: Path) -> tuple[list[Any], dict[str, Any]]:
    store = JsonlStore(output / "events.jsonl")
    events = list(store)
    store.close()
    return events, json.loads((output / "outcome.json").read_text())


@pytest.mark.parametrize(
    "step",
    [pytest.param(5, marks=pytest.mark.nightly), pytest.param(1, marks=pytest.mark.deep)],
)
def test_a_run_killed_after_each_event_and_in_its_resume_comes_to_the_same(
    killer: Killer, model_endpoint: ModelEndpoint, tmp_path: Path, step: int
) -> None:
    """Whole runs, because each is killed at another event; test_recovery.py of the controller has
    each event, without processes."""
    checkout, issue = make_checkout(tmp_path / "calc", FILES), tmp_path / "issue.md"
    issue.write_text("# Fix it")
    start = ("resolve", checkout, "--issue", issue, "--output")
    assert killer.run(*start, tmp_path / "whole") == 0, killer.printed
    events, expected = read(tmp_path / "whole")
    replies = sum(isinstance(e, ModelReplied) for e in events)
    assert git(checkout, "show", f"{expected['branch']}:count.txt").split("\n") == [
        "one", "two twice", "three twice",
    ]  # fmt: skip
    for number in range(0, len(events), step):
        git(checkout, "branch", "-D", expected["branch"])
        asked = len(model_endpoint.requests)
        output = tmp_path / f"killed-{number}"
        assert killer.run(*start, output, event=number) == KILLED, killer.printed
        if number % 2 == 0:
            later = number + 4 + number % 2
            ended = killer.run("resolve", "--resume", output, event=later, before=True)
            assert ended in (KILLED, 0), killer.printed
        assert killer.run("resolve", "--resume", output) == 0, killer.printed
        log, outcome = read(output)
        assert (outcome["tree"], outcome["divergences"]) == (expected["tree"], []), number
        branches = git(checkout, "branch", "--list", "agent/*", "--format=%(refname:short)")
        assert outcome["branch"] == expected["branch"] == branches, number
        assert sum(isinstance(e, ModelReplied) for e in log) == replies, number
        assert len(model_endpoint.requests) - asked <= replies + 2, number
        assert sum(isinstance(e, Resumed) for e in log) in (1, 2), number
        assert [e.id for e in log] == list(range(len(log))), number


class OnGitHub:
    """A repository with our bot and an issue, whose run is killed."""

    def __init__(self, github: GitHubServer, killer: Killer) -> None:
        self.repository = github.create_repository(REPOSITORY, FILES)
        github.add_user("resolver-bot")
        github.grant("resolver-bot", REPOSITORY, "write")
        self.issue: Issue = github.create_issue(
            REPOSITORY, "add subtracts", "2 + 2 gives 0.", author="zoe"
        )
        killer.environment = {
            **killer.environment,
            "GITHUB_TOKEN": github.token_for("resolver-bot", REPOSITORY),
            **github.addresses,
            "RESOLVER_VERIFY": "true",
        }

    def published(self) -> tuple[int, int, int]:
        """Return the numbers of branches, pull requests and comments for the issue."""
        branches = self.repository.git.text("for-each-ref", "refs/heads/agent").splitlines()
        pulls = [issue for issue in self.repository.issues.values() if issue.pull]
        comments = [c for c in self.issue.comments if c.author.login == "resolver-bot"]
        return len(branches), len(pulls), len(comments)


def require_verified_once(log: list[Any], outcome: dict[str, Any]) -> None:
    """Require a verified change, and no check that was executed twice."""
    evidence = outcome["evidence"]
    assert (evidence["verdict"], evidence["reason"]) == ("verified", None)
    assert evidence["reproduction"] == ["tests.test_calc.CalcTest.test_add"]
    executed = [e.key for e in log if isinstance(e, CheckExecuted)]
    assert len(executed) == len(set(executed)) == 6


def test_a_run_killed_at_each_step_of_publishing_publishes_once(
    github: GitHubServer, killer: Killer, tmp_path: Path
) -> None:
    """Whole runs, because each is killed at another step: in the middle of the agent's work, after
    the first check, with the verdict on the disk, and at each step that others can see."""
    on_github = OnGitHub(github, killer)
    issue = on_github.issue
    output = tmp_path / "output"
    sent = "http.client.send"
    start = ("resolve", f"{REPOSITORY}#{issue.number}", "--output", output)
    resume = ("resolve", "--resume", output)
    assert killer.run(*start, kind="file_edit_result") == KILLED, killer.printed
    assert killer.run(*resume, kind="check_executed") == KILLED, killer.printed
    assert killer.run(*resume, kind="verification_completed") == KILLED, killer.printed
    assert killer.run(*resume, audit="subprocess.Popen", word="'push'") == KILLED, killer.printed
    assert on_github.published() == (0, 0, 1), "the comment shows the progress"
    pulls = f"POST /api/v3/repos/{REPOSITORY}/pulls "
    assert killer.run(*resume, audit=sent, word=pulls) == KILLED, killer.printed
    assert on_github.published() == (1, 0, 1)
    assert killer.run(*resume, audit="os.rename", word="outcome.json") == KILLED, killer.printed
    assert on_github.published() == (1, 1, 1)
    assert killer.run(*resume) == 0, killer.printed
    assert on_github.published() == (1, 1, 1)
    log, outcome = read(output)
    require_verified_once(log, outcome)
    assert sum(isinstance(e, ModelReplied) for e in log) == len(SCRIPT), "a reply was asked again"
    assert outcome["divergences"] == []
    branch = f"refs/heads/{outcome['branch']}"
    counted = on_github.repository.git.text("show", f"{branch}:count.txt").splitlines()
    assert counted == ["one", "two twice", "three twice"], "a command was done again or was lost"
    assert outcome["branch"] == f"agent/issue-{issue.number}-add-subtracts"
    assert outcome["pull_request"]["number"] > issue.number
    assert outcome["comment_url"]
    assert b"a + b" in (output / "patch.diff").read_bytes()
    assert killer.run(*resume) == 0
    assert "has already finished" in killer.printed
    assert on_github.published() == (1, 1, 1)
