"""A repository on the test GitHub, and the runner's jobs in which the Action works on it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
import yaml

from tests.action.image import ROOT
from tests.parts.engine import wait_until_removed
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Comment
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.run_action import HOST, ActionRun, Job, checked_out, run_action
from tests.parts.runs import PRICES

REPOSITORY = "octo/calc"
FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "README.md": "# calc\n"}
MODEL_KEY = "sk-canary-5f3a9c1e7b2d4608a1c3e5f7d9b0c2e4"
ACTIONS = "github-actions[bot]"
"""Whose the job's token is."""

RUNNER = 1001
"""User and group id of the runner: what it checks out belongs to it, the container is root."""


def permissions() -> dict[str, str]:
    """What agent.yml gives its token, with what every token has."""
    job = yaml.safe_load((ROOT / ".github/workflows/agent.yml").read_text())["jobs"]["resolve"]
    given = {name.replace("-", "_"): right for name, right in job["permissions"].items()}
    return {"metadata": "read", **given}


class Scenario:
    """`mona` may write, `zoe` wrote the issue. The job's token has the rights of agent.yml."""

    def __init__(
        self,
        engine: docker.DockerClient,
        image: str,
        sandbox: str,
        github: GitHubServer,
        endpoint: ModelEndpoint,
        folder: Path,
    ) -> None:
        """image: the Action's. sandbox: the image given as its input."""
        self.engine, self.image, self.sandbox = engine, image, sandbox
        self.github, self.endpoint, self.folder = github, endpoint, folder
        self.repository = github.create_repository(REPOSITORY, FILES)
        github.add_user("mona")
        github.grant("mona", REPOSITORY, "write")
        github.add_user(ACTIONS, type="Bot")
        self.token = github.token_for(ACTIONS, REPOSITORY, permissions=permissions())
        self.issue = github.create_issue(
            REPOSITORY, "add() subtracts", "2 + 2 gives 0.", author="zoe"
        )
        self._jobs = 0

    @property
    def workspace(self) -> Path:
        """The last job's."""
        return self.folder / f"workspace-{self._jobs}"

    @property
    def output(self) -> Path:
        return self.workspace / "resolver-output"

    def mention(self, author: str = "mona", text: str = "@agent please fix this") -> Comment:
        return self.github.add_comment(self.issue, text, author)

    def event(self, comment: Comment | None = None) -> dict[str, Any]:
        return self.github.event_issue_comment(comment or self.mention())

    def run(
        self,
        event: Mapping[str, Any],
        inputs: Mapping[str, str] | None = None,
        **environment: str,
    ) -> ActionRun:
        """A job for the event, in a checkout of its own. environment: the step's `env:`."""
        self._jobs += 1
        checked_out(self.repository.git, self.workspace)
        for path in (self.workspace, *self.workspace.rglob("*")):
            os.chown(path, RUNNER, RUNNER, follow_symlinks=False)
        given = {
            "model": "openai/scripted",
            "llm-api-key": MODEL_KEY,
            "llm-base-url": f"http://{HOST}:{self.endpoint.port}/v1",
            "image": self.sandbox,
            **(inputs or {}),
        }
        prices = {
            "RESOLVER_VERIFY": "false",
            "RESOLVER_PACE": '{"write_interval": 0, "first_wait": 0.05}',
            "RESOLVER_MODEL_OPTIONS": PRICES,
        }
        job = Job(
            repository=REPOSITORY,
            event_name="issue_comment",
            event=event,
            server_url=self.github.server_url_at(HOST),
            token=self.token,
            run_id=77,
            environment={**prices, **environment},
        )
        return run_action(self.engine, ROOT, self.workspace, job, given, self.image)

    def branches(self) -> list[str]:
        return self.repository.git.text(
            "for-each-ref", "--format=%(refname:short)", "refs/heads/agent"
        ).split()

    def pulls(self) -> list[Any]:
        return [i for i in self.repository.issues.values() if i.pull is not None]

    def bot_comments(self) -> list[str]:
        return [c.body for c in self.issue.comments if c.author.login == ACTIONS]

    def wait_until_sandboxes_removed(self) -> None:
        """Wait until the engine has no container of the last job's run; fails if one stays."""
        run = json.loads((self.output / "outcome.json").read_text())["run"]
        wait_until_removed(self.engine, run)
