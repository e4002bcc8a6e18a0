"""The shell examples of the pages, executed: those that need no network, no server and no hours.

All run page by page in one prepared folder, a clone of a repository on the simulated GitHub.
It has what the pages call by a placeholder, under that name: the checkout `PATH`, the run `DIR`.
A block that can't be executed here says why in a comment before it (see `snippets`).
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from resolver.storage.database import ServerDatabase, parse_database_url
from tests.codebase.snippets import (
    PAGES,
    ROOT,
    Example,
    shell_examples,
    shell_lines,
)
from tests.parts.github import GitHubServer, github_server
from tests.parts.missing import skip_without
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply
from tests.parts.runs import (
    GIT_ENVIRONMENT,
    RESOLVER,
    CommandLine,
    bash,
    finish,
    git,
    make_checkout,
)

REPOSITORY = "OWNER/NAME"
"""A name that GitHub allows, and the one that the pages use."""

FILES = {
    "parser.py": "def parse(text):\n    return text.split()[:-1]\n",
    "tests/test_parser.py": (
        "import unittest\n\n\nclass Parse(unittest.TestCase):\n"
        "    def test_empty(self):\n        self.assertEqual([], [])\n"
    ),
}
ISSUE = "# parse() drops the last line\n\nIt is lost if the file has no newline at its end.\n"
LOG_REF = "refs/resolver/runs/7/20260102-030405-abc123"
"""The log of a run that `commands.md` shows how to read."""

TOOLS = {"jq", "sqlite3"}
"""Programs that the pages use and that neither Resolver nor another test needs."""

PULL_REQUEST_PAGE = "pull-requests.md"
"""The page whose `OWNER/NAME#N` is a pull request."""


def answer(body: dict[str, Any]) -> Answer:
    """Return a command that changes a file, and the end of the run after its result."""
    messages = json.dumps(body["messages"])
    # As Anthropic and OpenAI mark the result of a tool.
    if '"tool_result"' in messages or '"role": "tool"' in messages:
        return finish("Keep the last line\n\n`parse` dropped it.")
    return bash("echo '# The last line is kept.' >> parser.py")


class Workplace:
    """The folder in which the examples are executed, and the GitHub that they reach."""

    def __init__(self, folder: Path, github: GitHubServer, endpoint: ModelEndpoint) -> None:
        self.folder = folder / "workplace"
        self.environment = {**CommandLine(folder, endpoint).environment, **GIT_ENVIRONMENT}
        self._populate_github(github)
        self.environment |= {
            "PATH": f"{RESOLVER.parent}:{self.environment['PATH']}",
            "HOME": str(folder / "home"),
            "GITHUB_TOKEN": self.token,
            **github.addresses,
            "RESOLVER_DATABASE_URL": "sqlite:///resolver.db",
        }
        (folder / "home").mkdir()
        endpoint.answer_with(answer)
        endpoint.readiness = reply("ready")
        self._clone(github)
        self._populate_folder()

    def _populate_github(self, github: GitHubServer) -> None:
        github.create_repository(REPOSITORY, FILES)
        github.add_user("resolver-bot")
        github.grant("resolver-bot", REPOSITORY, "write")
        self.token = github.token_for("resolver-bot", REPOSITORY)
        self.issue = github.create_issue(REPOSITORY, *ISSUE.split("\n\n"), author="resolver-bot")
        github.commit(REPOSITORY, "topic", {"new.py": "1\n"}, "Add new.py", "resolver-bot")
        self.pull = github.create_pull(REPOSITORY, "topic", "Add new.py", "", "resolver-bot")

    def _clone(self, github: GitHubServer) -> None:
        address = github.server_url.replace("://", f"://x-access-token:{self.token}@")
        git(self.folder.parent, "clone", "-q", f"{address}/{REPOSITORY}.git", str(self.folder))
        (self.folder / "events.jsonl").write_text("{}\n")
        git(self.folder, "add", "events.jsonl")
        git(self.folder, "commit", "-q", "-m", "Log")
        git(self.folder, "push", "-q", "origin", f"HEAD:{LOG_REF}")
        git(self.folder, "reset", "-q", "--hard", "HEAD~1")

    def _populate_folder(self) -> None:
        checkout = make_checkout(self.folder / "PATH", FILES)
        (self.folder / "path/to").mkdir(parents=True)
        (self.folder / "path/to/checkout").symlink_to(checkout)
        (self.folder / "issue.md").write_text(ISSUE)
        (self.folder / ".venv/bin").mkdir(parents=True)
        (self.folder / ".venv/bin/resolver").symlink_to(RESOLVER)
        ServerDatabase(parse_database_url(f"sqlite:///{self.folder}/resolver.db")).close()
        # Of the folder DIR, the demo's and the quota ledger, the pages say how to read them.
        assert not self.execute("resolver demo")
        assert not self.execute("resolver resolve PATH --issue issue.md --no-publish --output DIR")
        assert not self.execute(f"resolver resolve {REPOSITORY}#{self.issue.number}")
        shutil.copytree(self.folder / "DIR", self.folder / "LOG")
        for name in ("events.jsonl", "outcome.json"):
            shutil.copy(self.folder / "DIR" / name, self.folder)

    def execute(self, script: str) -> str:
        """Return what is wrong about a script, "" if nothing is."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode == 0:
            return ""
        return f"exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"

    def script_of(self, example: Example) -> str:
        """Return the text of an example, with values in place of what has no real ones."""
        on_pull = example.page.name == PULL_REQUEST_PAGE
        number = self.pull.number if on_pull else self.issue.number
        text = example.text.replace("#N", f"#{number}")
        text = text.replace("GITHUB_TOKEN=...", f"GITHUB_TOKEN={self.token}")
        return re.sub(r"(GITHUB_\w+_URL)=https://github\.example\.org\S*", r"\1", text)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    folder = tmp_path_factory.mktemp("examples")
    with github_server(folder / "github") as github, ModelEndpoint() as endpoint:
        yield Workplace(folder, github, endpoint)
        github.validate_everything()


def commands(example: Example) -> set[str]:
    """Return the lines of an example, without what makes no other command of them."""
    lines = shell_lines(example.text.replace("path/to/checkout", "PATH"))
    return {re.sub(r'"[^"]*"|\.venv/bin/|\s+#.*', "", line) for line in lines}


def missing_programs(example: Example) -> set[str]:
    """Return the programs of TOOLS that an example needs and this machine lacks."""
    used = {line.split()[0] for line in shell_lines(example.text)} & TOOLS
    return {tool for tool in used if shutil.which(tool) is None}


@cache
def executable_examples() -> dict[str, list[Example]]:
    """The examples to execute, by page. One whose commands an earlier example has is left out."""
    found: dict[str, list[Example]] = {}
    known: set[str] = set()
    for page in PAGES:
        for example in shell_examples(page):
            if not example.mark and not commands(example) <= known:
                known |= commands(example)
                found.setdefault(str(page.relative_to(ROOT)), []).append(example)
    return found


def page_marks(page: str) -> list[pytest.MarkDecorator]:
    """What a newcomer tries first is executed by day, the other pages at night."""
    return [] if page in {"README.md", "docs/tutorial/first-run.md"} else [pytest.mark.nightly]


@pytest.mark.xdist_group("examples")
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=page_marks(page)) for page in executable_examples()]
)
def test_the_shell_examples_run(workplace: Workplace, page: str) -> None:
    missing: set[str] = set()
    for example in executable_examples()[page]:
        if lacking := missing_programs(example):
            missing |= lacking
        elif fault := workplace.execute(workplace.script_of(example)):
            pytest.fail(f"{example.place}: {fault}\n{example.text}")
    if missing:
        skip_without(" and ".join(sorted(missing)), "not on PATH")
