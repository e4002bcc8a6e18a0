"""Executes checks in a sandbox and takes their reports out of it.

The sandbox holds a tree that Resolver has checked out, and no agent has worked in it. What comes
out is still not trusted if the tree is a change's: its code may write any report and end with any
exit code. `comparison` therefore compares the tests by name with those of the base commit.
"""

import posixpath
import secrets
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun, SandboxAction
from resolver.events.base import ObservationBase
from resolver.events.observations import CmdOutput
from resolver.models.verification import CheckExecution, ProjectCheck
from resolver.runtime.toolbox import BASH, GIT
from resolver.verification.reports import MAX_REPORT_BYTES, excerpt_of_output, read_reports
from resolver.verification.runners import instrument, reporter_of

MAX_REPORT_FILES = 200
"""Maximum number of report files that are read after one execution."""

MAX_OUTPUT = 4_000
"""Number of characters kept of the end of a check's output."""

_PREPARING_SECONDS = 30.0

_PROJECT_PATH = "${PATH//:" + posixpath.dirname(BASH).replace("/", r"\/") + "/}"
"""PATH as a word of bash, without the toolbox."""


class CommandSandbox(Protocol):
    """The part of a Runtime that executes checks."""

    root: str

    @property
    def scratch(self) -> str: ...

    def put_file(self, name: str, content: bytes) -> None: ...

    def execute(self, action: SandboxAction) -> ObservationBase: ...

    def fetch(self, path: str, destination: Path, max_bytes: int) -> None: ...

    def interrupt(self) -> None: ...


class CollectedReports(NamedTuple):
    """The results of an execution: its report files by path, and its output.

    is_complete: False if a report or the output could not be taken out.
    """

    files: Mapping[str, bytes]
    output: str
    is_complete: bool


def execute_check(sandbox: CommandSandbox, check: ProjectCheck, seconds: float) -> CheckExecution:
    """Execute the check in the root of the sandbox's tree and return its result.

    seconds: time limit; the command is ended when it is reached.
    Raises SandboxError if the sandbox is lost.
    """
    # The name is random, so that no earlier execution can have left a report there.
    folder = f"{sandbox.scratch}/reports-{secrets.token_hex(12)}"
    instrumented = instrument(check, folder)
    name, tools = posixpath.basename(folder), f"{folder}-tools"
    if tool := reporter_of(instrumented):
        ending, program = tool
        sandbox.put_file(f"{name}{ending}", program)
    script = _script(instrumented, tools).encode("utf-8", "surrogateescape")
    sandbox.put_file(f"{name}.sh", script)
    _run(sandbox, _preparation(instrumented, folder, tools), _PREPARING_SECONDS)
    output = f"{folder}/output.txt"
    # In a subshell, so that `exit` or a changed variable ends with the check.
    done = _run(sandbox, f"( . {shlex.quote(f'{folder}.sh')} ) </dev/null >{output} 2>&1", seconds)
    if done.exit_code is None:
        sandbox.interrupt()
    if check.files:
        _run(sandbox, shlex.join(["rm", "-f", "--", *check.files]), _PREPARING_SECONDS)
    reports = _collect(sandbox, instrumented, output)
    reading = read_reports(
        instrumented.report_format, *reports[:2], root=sandbox.root, folder=check.folder
    )
    return CheckExecution(
        exit_code=None if done.timed_out else done.exit_code,
        seconds=round(done.seconds, 3),
        cases=reading.cases,
        output=excerpt_of_output(reports.output, MAX_OUTPUT),
        report_complete=reading.complete and reports.is_complete,
    )


def _script(check: ProjectCheck, tools: str) -> str:
    # As GitHub Actions runs `shell: bash`: the first command that fails ends the check.
    lines = ["set -eo pipefail", f"PATH={_PROJECT_PATH}:{tools}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in check.environment.items()]
    return "\n".join([*lines, check.command, ""])


def _preparation(check: ProjectCheck, folder: str, tools: str) -> str:
    """Return the command that makes both folders and removes reports that are there.

    Without bash and git of its own, the image has those of the toolbox, but never its Python, in
    which the project's dependencies are missing. Many images have `python3` and no `python`.
    """
    made = f"""mkdir -p {folder} {tools}; ln -s {BASH} {GIT} {tools}
if python=$(PATH={_PROJECT_PATH}; type -P python3); then ln -s "$python" {tools}/python; fi"""
    patterns = _patterns(check)
    removed = f"\n( shopt -s nullglob globstar; rm -f -- {patterns} )" if patterns else ""
    written = "".join(
        f"\nprintf %s {shlex.quote(text)} > {shlex.quote(path)}"
        for path, text in check.files.items()
    )
    return f"{made}{removed}{written}"


def _patterns(check: ProjectCheck) -> str:
    """Return the check's report glob as a word of bash, in which only `*`, `?` and `[` are kept."""
    if not check.report:
        return ""
    return "".join(c if c in "*?[]" else shlex.quote(c) for c in check.report)


def _collect(sandbox: CommandSandbox, check: ProjectCheck, output: str) -> CollectedReports:
    """Take the report files and the output out of the sandbox."""
    is_complete = True
    files: dict[str, bytes] = {}
    if patterns := _patterns(check):
        listing = f"( shopt -s nullglob globstar; printf '%s\\n' {patterns} )"
        listed = _run(sandbox, listing, _PREPARING_SECONDS).content.splitlines()
        paths = [path for path in listed if path.strip()]
        is_complete = bool(paths) and len(paths) <= MAX_REPORT_FILES
        for path in paths[:MAX_REPORT_FILES]:
            where = path if path.startswith("/") else f"{sandbox.root}/{path}"
            content = _fetch(sandbox, where)
            is_complete = is_complete and content is not None
            files |= {path: content} if content is not None else {}
    text = _fetch(sandbox, output)
    if text is not None:
        return CollectedReports(files, text.decode("utf-8", "replace"), is_complete)
    # The output is too long to be taken out, so that no report can be read from it.
    end = _run(sandbox, f"tail -c {MAX_OUTPUT} {output}", _PREPARING_SECONDS).content
    return CollectedReports(files, end, is_complete and (bool(files) or not check.report_format))


def _fetch(sandbox: CommandSandbox, path: str) -> bytes | None:
    """Return the content of a file of the sandbox; None if it is no regular file, or too large."""
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        taken = Path(folder) / "report"
        try:
            sandbox.fetch(path, taken, MAX_REPORT_BYTES)
        except SandboxError:
            return None
        return taken.read_bytes()


def _run(sandbox: CommandSandbox, command: str, seconds: float) -> CmdOutput:
    """Execute a command. Raises SandboxError if the sandbox can't execute it."""
    done = sandbox.execute(CmdRun(command=command, timeout=max(seconds, 1.0)))
    if not isinstance(done, CmdOutput):
        raise SandboxError(
            f"the sandbox could not execute a check: {getattr(done, 'content', '')[:300]}",
            "see the event log for what ran last",
        )
    return done
