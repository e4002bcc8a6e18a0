"""Work on the branch of a pull request, over real sockets.

tests/publishing decides what happens to a change where the branch has moved, is protected or is in
a fork.
"""

from typing import Any

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.scenario import Scenario

UPSTREAM = "octo/calc"
LINES = "".join(f"# line {n}\n" for n in range(1, 31))
HALF = bash("sed -i 's/x \\/\\/ 2/x \\/ 2/' half.py")
DONE = "Divide instead of rounding down\n\n`half(3)` is 1.5 now."


class PullScenario(Scenario):
    """A pull request of the maintainer `mona`, from a branch of the same repository."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        self.token = github.token_for("resolver-bot")
        line.environment["GITHUB_TOKEN"] = self.token
        line.environment["RESOLVER_PACE"] = '{"command_interval": 0.2, "write_interval": 0}'
        github.commit(UPSTREAM, "main", {"lines.py": LINES})
        self.head = github.commit(
            UPSTREAM, "half", {"half.py": "def half(x):\n    return x // 2\n"}, "Add half()", "mona"
        )
        self.pull: Issue = github.create_pull(UPSTREAM, "half", "Add half()", "", author="mona")

    def ask(self, text: str, **environment: str) -> Ended:
        return self.action(self.event(text), **environment)

    def event(self, text: str = "@agent please make it divide") -> dict[str, Any]:
        self.github.advance(5)
        return self.github.event_issue_comment(self.github.add_comment(self.pull, text, "mona"))

    def own_comments(self) -> list[str]:
        return [c.body for c in self.pull.comments if c.author.login == "resolver-bot"]

    def tip(self) -> str:
        return self.git("rev-parse", "refs/heads/half")

    def git(self, *args: str) -> str:
        return str(self.repository.git.text(*args))

    @property
    def prompt(self) -> str:
        body = self.endpoint.requests[0].body
        return "\n".join(str(m["content"]) for m in body["messages"])


SCENARIO = PullScenario


def right(done: Ended) -> None:
    assert done.exit_code == 0, done.stdout + done.stderr


def test_a_fix_becomes_one_commit_on_the_branch_of_the_pull_request(scenario: PullScenario) -> None:
    """A whole run: the story of a pull request, which changes a workflow itself."""
    scenario.head = scenario.github.commit(
        UPSTREAM, "half", {".github/workflows/ci.yml": "on: push\n"}, "ci", "mona"
    )
    scenario.endpoint.script(HALF, finish(DONE))
    done = scenario.action(scenario.event())
    right(done)
    tip = scenario.tip()
    assert scenario.git("rev-parse", f"{tip}^") == scenario.head
    assert scenario.git("diff", "--name-only", f"{tip}^", tip) == "half.py"
    assert scenario.git("show", f"{tip}:half.py").endswith("x / 2")
    assert "Co-authored-by: mona" in scenario.git("log", "-1", "--format=%B", tip)
    assert len(scenario.pulls()) == 1 and scenario.branches() == []
    [comment] = scenario.own_comments()
    assert tip[:12] in comment and f"/commit/{tip}" in comment and "`half`" in comment
    assert "Fixes #" not in scenario.git("log", "-1", "--format=%B", tip)
    assert done.outcome["branch"] == "half" and done.outcome["commit"] == tip
    assert "return x // 2" in scenario.prompt and "make it divide" in scenario.prompt
    assert scenario.pull.title == "Add half()"
