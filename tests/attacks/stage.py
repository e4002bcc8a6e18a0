"""One attack from the command line to every place where it could show: `Stage`."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.canaries import files_below
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, Ended, git
from tests.parts.waiting import becomes_true

everywhere = pytest.mark.parametrize(
    "runtime", ["local", pytest.param("docker", marks=pytest.mark.engine)]
)
"""Plays an attack in each kind of sandbox."""

WAIT = 60.0
"""Seconds that something which must happen may take on a busy machine."""


class Stage:
    """A person's checkout, a command line with canaries in its environment, a scripted model.

    temporary: TMPDIR of the program. home: HOME of the program.
    """

    def __init__(self, folder: Path, line: CommandLine, checkout: Path) -> None:
        self.folder = folder
        self.line = line
        self.checkout = checkout
        self.temporary = folder / "temporary"
        self.home = folder / "home"
        self.temporary.mkdir()
        self.home.mkdir()

    @property
    def endpoint(self) -> ModelEndpoint:
        return self.line.endpoint

    def run(
        self, *answers: Answer, options: tuple[str, ...] = (), issue: str = "# Fix it"
    ) -> Ended:
        """A whole run as a process of its own, in which the model gives these answers."""
        self.endpoint.script(*answers)
        return self.line.resolve(self.checkout, *options, issue=issue)

    def play(
        self, *answers: Answer, options: tuple[str, ...] = (), issue: str = "# Fix it"
    ) -> Ended:
        """The same inside this process, which is quicker; `temporary` is not used."""
        self.endpoint.script(*answers)
        return self.line.call_resolve(self.checkout, *options, issue=issue)

    def start(self, output: Path, *answers: Answer) -> "subprocess.Popen[str]":
        """The same, not waited for. It leads a process group of its own."""
        self.endpoint.script(*answers)
        issue = self.folder / "issue.md"
        issue.write_text("# Fix it")
        return subprocess.Popen(
            self.line.command("resolve", self.checkout, "--issue", issue, "--output", output),
            env=self.line.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            process_group=0,
        )

    def sinks(self, done: Ended) -> bytes:
        """All that a run wrote, printed, committed, sent to the model, or left in a folder."""
        objects = subprocess.run(
            ["git", "-C", self.checkout, "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True,
            check=True,
        )
        asked = "".join(str(request.body) for request in self.endpoint.requests)
        refs = git(self.checkout, "for-each-ref", "--format=%(refname)")
        left = files_below(self.temporary)
        return b"\n".join((done.everything, objects.stdout, asked.encode(), refs.encode(), left))


def eventually(true: Callable[[], object], seconds: float = WAIT) -> bool:
    """Return True if the condition becomes true in time."""
    return becomes_true(true, seconds)


def processes_with(mark: str) -> list[int]:
    """Processes of this machine, containers' among them, with `mark` in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def end(process: "subprocess.Popen[str]", number: int) -> Ended:
    """Send the signal to the program alone, and wait for its end."""
    os.kill(process.pid, number)
    try:
        stdout, stderr = process.communicate(timeout=WAIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Ended(process.returncode, stdout, stderr, Path())
