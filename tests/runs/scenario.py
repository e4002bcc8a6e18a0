"""A repository on the test GitHub with an issue, and runs of the command line and of the Action."""

import json
from typing import Any

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment, Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash

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
