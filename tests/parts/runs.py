"""Runs of the real command line on a checkout, with a scripted model behind a real socket."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from resolver.cli.main import run
from resolver.events.log import Event, read_log
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.prefork import preforked_script

INSTALLED_RESOLVER = Path(sys.executable).parent / "resolver"
"""The script that pip installed."""

RESOLVER = preforked_script(INSTALLED_RESOLVER)
"""Behaves as the installed script, in a process that has imported the package already."""

MODEL_KEY = "mk-canary-5f3a9c1e7b2d4608a1c3e5f7"
FORGE_TOKEN = "forge-canary-b81d0e6f4a2c97531e0d8f6b"

PRICES = "{input_cost_per_token: 0.000001, output_cost_per_token: 0.000001}"
"""What each token costs, in US dollars: the value of the setting `model_options`."""

GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(repository: Path, *args: str) -> str:
    """Run plain git in a repository of a test, and return its stdout."""
    done = subprocess.run(
        ["git", "-C", repository, *args],
        env={**os.environ, **GIT_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def make_checkout(folder: Path, files: Mapping[str, str]) -> Path:
    """Create a repository with one commit of `files` on main."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Begin")
    return folder


def bash(command: str, **more: Any) -> Answer:
    """Return a reply in which the model calls a command."""
    return tool_call("execute_bash", {"command": command, **more})


def finish(message: str = "Fix it", completed: bool = True, **more: str) -> Answer:
    """Return a reply in which the model finishes. `more` are other arguments of the tool.

    The title is the message's first line.
    """
    title = message.partition("\n")[0][:72]
    arguments = {"title": title, "message": message, "task_completed": str(completed).lower()}
    return tool_call("finish", arguments | more)


@dataclass(frozen=True)
class Ended:
    """A command line that has ended."""

    exit_code: int
    stdout: str
    stderr: str
    output: Path

    @property
    def outcome(self) -> dict[str, Any]:
        """The content of outcome.json."""
        data: dict[str, Any] = json.loads((self.output / "outcome.json").read_text())
        return data

    @property
    def events(self) -> list[Event]:
        """The events of the log."""
        return list(read_log(self.output / "events.jsonl"))

    @property
    def everything(self) -> bytes:
        """Everything that the run wrote or printed, to be searched for secrets."""
        files = sorted(p for p in self.output.rglob("*") if p.is_file())
        printed = (self.stdout + self.stderr).encode()
        return printed + b"".join(p.read_bytes() for p in files)


class CommandLine:
    """Starts `resolver` like a user. `folder` is for output; nothing else is inherited."""

    def __init__(self, folder: Path, endpoint: ModelEndpoint) -> None:
        self.folder = folder
        self.endpoint = endpoint
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/root"),
            "LLM_MODEL": "openai/scripted",
            "LLM_API_KEY": MODEL_KEY,
            "LLM_BASE_URL": endpoint.url,
            "GITHUB_TOKEN": FORGE_TOKEN,
            "RESOLVER_RUNTIME": "local",
            "RESOLVER_VERIFY": "false",
            "RESOLVER_MODEL_OPTIONS": PRICES,
            # GitHub asks for a second between two writes.
            "RESOLVER_PACE": '{"write_interval": 0, "first_wait": 0.05}',
        }
        self._count = 0

    def command(self, *args: str | Path) -> list[str]:
        """Return the complete argument list."""
        return [str(RESOLVER), *map(str, args)]

    @staticmethod
    def _needs_output(args: tuple[str | Path, ...]) -> bool:
        return args[0] == "resolve" and not {"--output", "--resume"} & set(args)

    def call(self, *args: str | Path, **environment: str) -> Ended:
        """Execute a command in this process: the same code, without starting Python and importing
        litellm each time."""
        self._count += 1
        output = self.folder / f"output-{self._count}"
        given = self.command(*args, *(["--output", output] if self._needs_output(args) else []))
        stdout, stderr = io.StringIO(), io.StringIO()
        with redirect_stdout(stdout), redirect_stderr(stderr):
            code = run(given[1:], {**self.environment, **environment})
        return Ended(code, stdout.getvalue(), stderr.getvalue(), output)

    def run(self, *args: str | Path, **environment: str) -> Ended:
        """Execute a command as a separate process in `folder`."""
        self._count += 1
        output = self.folder / f"output-{self._count}"
        done = subprocess.run(
            self.command(*args, *(["--output", output] if self._needs_output(args) else [])),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            timeout=240,
        )
        return Ended(done.returncode, done.stdout, done.stderr, output)

    def resolve(
        self, checkout: Path, *options: str, issue: str = "# Fix it\n\nIt is broken."
    ) -> Ended:
        """Execute `resolver resolve CHECKOUT --issue FILE.md` as a separate process."""
        return self.run("resolve", checkout, "--issue", self._issue_file(issue), *options)

    def call_resolve(
        self,
        checkout: Path,
        *options: str,
        issue: str = "# Fix it\n\nIt is broken.",
        **environment: str,
    ) -> Ended:
        """Execute `resolver resolve` in this process."""
        file = self._issue_file(issue)
        return self.call("resolve", checkout, "--issue", file, *options, **environment)

    def _issue_file(self, text: str) -> Path:
        file = self.folder / "issue.md"
        file.write_text(text)
        return file


@pytest.fixture
def command_line(tmp_path: Path, model_endpoint: ModelEndpoint) -> Iterator[CommandLine]:
    folder = tmp_path / "command-line"
    folder.mkdir()
    yield CommandLine(folder, model_endpoint)
