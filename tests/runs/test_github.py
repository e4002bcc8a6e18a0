"""The main job on GitHub, from the command line and from the Action's events, over real sockets.

Whole runs: the stories that all others vary.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish

REPOSITORY = "octo/calc"
FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "README.md": "# calc\n"}
FIX = bash("sed -i 's/a - b/a + b/' calc.py")
SUMMARY = "Make add add\n\n`add` subtracted; it adds now."

SELDOM = {
    "RESOLVER_PACE": '{"command_interval": 600, "progress_interval": 600, "write_interval": 0}'
}
"""Polls for comments and edits of progress are as many as the run is long: there are none here."""


class Scenario:
    """A repository with an issue, a maintainer (`mona`), and our bot's token."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        self.github, self.line, self.endpoint = github, line, endpoint
        github.create_repository(REPOSITORY, FILES)
        github.add_user("mona")
        github.grant("mona", REPOSITORY, "write")
        github.add_user("resolver-bot")
        github.grant("resolver-bot", REPOSITORY, "write")
        self.token = github.token_for("resolver-bot", REPOSITORY)
        self.issue: Issue = github.create_issue(
            REPOSITORY, "add() subtracts", "2 + 2 gives 0.", author="zoe"
        )
        line.environment |= {
            "GITHUB_TOKEN": self.token,
            **github.addresses,
        }
        self._events = 0

    @property
    def target(self) -> str:
        return f"{REPOSITORY}#{self.issue.number}"

    def resolve(self, *options: str) -> Ended:
        return self.line.call("resolve", self.target, *options)

    def mention(self, author: str = "mona", text: str = "@agent please fix this") -> Comment:
        return self.github.add_comment(self.issue, text, author)

    def action(
        self, event: dict[str, Any], name: str = "issue_comment", **environment: str
    ) -> Ended:
        """`resolver action` as the runner starts it; its output folder is in the workspace."""
        self._events += 1
        workspace = self.line.folder / f"workspace-{self._events}"
        workspace.mkdir()
        path = workspace / "event.json"
        path.write_text(json.dumps(event))
        done = self.line.call(
            "action",
            GITHUB_EVENT_NAME=name,
            GITHUB_EVENT_PATH=str(path),
            GITHUB_WORKSPACE=str(workspace),
            GITHUB_OUTPUT=str(workspace / "outputs"),
            GITHUB_STEP_SUMMARY=str(workspace / "summary"),
            GITHUB_RUN_ID="77",
            **environment,
        )
        # No real run is so short that the next event has the same second.
        self.github.advance(1)
        return Ended(done.exit_code, done.stdout, done.stderr, workspace / "resolver-output")

    def outputs(self) -> dict[str, str]:
        """The last action's outputs."""
        text = (self.line.folder / f"workspace-{self._events}" / "outputs").read_text()
        return dict(line.split("=", 1) for line in text.splitlines())

    def summary(self) -> str:
        return (self.line.folder / f"workspace-{self._events}" / "summary").read_text()

    @property
    def repository(self) -> Any:
        return self.github.repository(REPOSITORY)

    def branches(self) -> list[str]:
        names = self.repository.git.text(
            "for-each-ref", "--format=%(refname:short)", "refs/heads/agent"
        )
        return names.split()

    def pulls(self) -> list[Any]:
        return [i for i in self.repository.issues.values() if i.pull is not None]

    def bot_comments(self) -> list[str]:
        return [c.body for c in self.issue.comments if c.author.login == "resolver-bot"]

    def work_done(self) -> bool:
        return bool(self.branches() or self.pulls() or self.endpoint.requests)


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(github, command_line, model_endpoint)
    yield made
    wire = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in wire, "the token was written to a file"


def test_a_mention_is_seen_at_once_and_answered(scenario: Scenario) -> None:
    """A whole run: the story of a request, from the reaction to the outputs of the job. The agent's
    words are hostile, but the commit mentions nobody, closes no other issue and skips no check."""
    said = "Make add add\n\nFixes #7, as @zoe and octo/other#8 say. [skip ci]\n\nskip-checks: true"
    scenario.endpoint.script(FIX, finish(said))
    scenario.mention("zoe", "It is in calc.py, I think.")
    comment = scenario.mention(text="@agent please fix this, and keep it small")
    done = scenario.action(scenario.github.event_issue_comment(comment), **SELDOM)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert [r.content for r in comment.reactions] == ["eyes"]
    first_write = next(w for w in scenario.github.writes() if w.kind == "rest")
    assert first_write.path.endswith(f"/comments/{comment.id}/reactions")
    prompt = json.dumps(scenario.endpoint.requests[0].body)
    for words in ("2 + 2 gives 0.", "It is in calc.py, I think.", "keep it small"):
        assert words in prompt, words
    [pull] = scenario.pulls()
    assert pull.title == "Make add add"
    for words in (f"Fixes #{scenario.issue.number}\n", "$0.0002", "2 iterations"):
        assert words in pull.body, words
    assert done.outcome["pull_request"]["number"] == pull.number
    tree = f"refs/heads/{done.outcome['branch']}^{{tree}}"
    assert scenario.repository.git.text("rev-parse", tree).strip() == done.outcome["tree"]
    assert scenario.outputs() == {
        "state": "finished",
        "branch": f"agent/issue-{scenario.issue.number}-add-subtracts",
        "pull-request-number": str(pull.number),
        "pull-request-url": f"{scenario.github.server_url}/{REPOSITORY}/pull/{pull.number}",
        "cost": "0.0002",
        "iterations": "2",
        "output": "resolver-output",
        "outcome": "resolver-output/outcome.json",
        "events": "resolver-output/events.jsonl",
    }
    assert "<details>" in scenario.summary()
    [answer] = scenario.bot_comments()
    assert "actions/runs/77" in answer and f"/pull/{pull.number}" in answer
    assert "<details>" in answer and "s/a - b/a + b/" in answer
    message = scenario.repository.git.text(
        "log", "-1", "--format=%an%n%B", f"refs/heads/{done.outcome['branch']}"
    )
    assert message.startswith("resolver-bot\nMake add add\n")
    assert f"Fixes #{scenario.issue.number}\n" in message
    assert f"Resolver-Run: {done.outcome['run']}" in message
    assert re.search(r"Co-authored-by: mona <\d+\+mona@users.noreply.127.0.0.1>", message)
    loud = ("#7", "@zoe", "#8", "[skip ci]", "skip-checks:")
    assert not any(words in message for words in loud), message


def test_an_empty_repository_is_called_one(scenario: Scenario) -> None:
    scenario.repository.git.git("update-ref", "-d", "refs/heads/main")
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()))
    assert done.exit_code == 1 and not scenario.work_done()
    [comment] = scenario.bot_comments()
    assert "octo/calc is empty.\n\n**What next:** Push a first commit" in comment


@pytest.mark.nightly
@pytest.mark.attack
def test_the_same_delivery_again_does_nothing_twice(scenario: Scenario) -> None:
    """A delivery is repeated: there is one branch, one pull request and one comment."""
    scenario.endpoint.script(FIX, finish(SUMMARY))
    event = scenario.github.event_issue_comment(scenario.mention())
    first = scenario.action(event)
    asked = len(scenario.endpoint.requests)
    second = scenario.action(event)
    assert (first.exit_code, second.exit_code) == (0, 0), second.stdout + second.stderr
    assert len(scenario.endpoint.requests) == asked
    assert (len(scenario.branches()), len(scenario.pulls()), len(scenario.bot_comments())) == (
        1,
        1,
        1,
    )
    assert second.outcome["repeated"] is True
    assert second.outcome["pull_request"]["number"] == first.outcome["pull_request"]["number"]


@pytest.mark.attack
@pytest.mark.parametrize("role", [None, "read", "triage"])
def test_an_author_without_write_access_gets_no_run(scenario: Scenario, role: str | None) -> None:
    """Somebody without write access asks for work on an issue: refused before anything is
    cloned."""
    scenario.github.add_user("eve")
    scenario.github.grant("eve", REPOSITORY, role, association="MEMBER")
    event = scenario.github.event_issue_comment(scenario.mention("eve"))
    done = scenario.action(event)
    assert done.exit_code == 5, done.stdout
    assert not scenario.work_done()
    assert done.outcome["state"] == "refused"
    [comment] = scenario.bot_comments()
    assert "write access" in comment
    assert not [r for r in scenario.github.requests if r.kind == "git"]


@pytest.mark.attack
def test_a_workflow_change_is_kept_and_not_pushed(scenario: Scenario) -> None:
    """The agent changes a workflow: the patch is kept and not pushed."""
    scenario.endpoint.script(
        bash("mkdir -p .GitHub/workflows && echo 'on: push' > .GitHub/workflows/x.yml"), finish()
    )
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()))
    assert done.exit_code == 5
    assert not scenario.branches()
    [comment] = scenario.bot_comments()
    assert ".GitHub/workflows/x.yml" in comment
    assert b"on: push" in (done.output / "patch.diff").read_bytes()


@pytest.mark.parametrize(
    ("target", "says"),
    [("octo/nothing#1", "octo/nothing"), (f"{REPOSITORY}#99", "99")],
)
def test_a_missing_repository_or_issue_is_a_clear_error(
    scenario: Scenario, target: str, says: str
) -> None:
    done = scenario.line.call("resolve", target)
    assert done.exit_code in (1, 5)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
