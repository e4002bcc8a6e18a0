"""`Runtime`: what the rest of the program does with a sandbox, whatever machine it is on.

Actions in, observations out; the checkout in, the change out. Events are returned unnumbered.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from resolver.errors import SandboxError
from resolver.events.actions import (
    BrowseInteractive,
    BrowseURL,
    CmdRun,
    FileEdit,
    FileRead,
    FileWrite,
    IPythonRunCell,
)
from resolver.events.lifecycle import Egress
from resolver.events.log import Observation, SandboxAction
from resolver.events.observations import (
    BrowserOutput,
    CmdOutput,
    ErrorObservation,
    FileEditResult,
    FileReadResult,
    FileWriteResult,
    IPythonOutput,
)
from resolver.runtime.archive import take_file, wrap_file, wrap_folder
from resolver.runtime.base import Machine
from resolver.runtime.client import Notices, Send, WireClient
from resolver.runtime.egress import EgressLog, EgressPolicy
from resolver.runtime.programs import Program
from resolver.runtime.tunnels import HostTunnels
from resolver.sandbox import wire

T = TypeVar("T")

MAX_COMMAND_SECONDS: Final = 3600.0
"""Longest an agent may let one command or cell run."""

START_SECONDS: Final = 60.0
FILE_SECONDS: Final = 60.0
GIT_SECONDS: Final = 600.0
GRACE_SECONDS: Final = 30.0
"""What the server gets on top of a command's own time to interrupt it and answer."""

BROWSE_SECONDS: Final = 120.0
"""Longest that the actions of one browse may take."""

BROWSE_GRACE: Final = 120.0
"""What the server gets on top of it to start the browser, and to end a page that does not answer
and show what is left."""

INTERRUPT_SECONDS: Final = 0.5
"""Between two times that what runs is told to end. From the second time on it is killed."""

INTERRUPT_PATIENCE: Final = 30.0
"""Seconds in which it has ended; a shell that was only just being started takes its time."""

MOST_CHANGED: Final = 1 << 30
"""Bytes of a change's bundle unless the caller names fewer."""

ERROR_CODES: Final = {
    CmdRun: "command",
    IPythonRunCell: "cell",
    FileRead: "view",
    FileWrite: "create",
    FileEdit: "edit",
    BrowseURL: "browse",
    BrowseInteractive: "browse",
}
_CHECKOUT_FOLDER: Final = "checkout.git"


class Runtime:
    """A running sandbox. Use as a context manager; leaving stops and removes everything.

    command_timeout: seconds a command or cell may take unless the action says otherwise.
    egress: what its connections may reach, where the machine's spec lets it out at all.
    """

    def __init__(
        self, machine: Machine, command_timeout: float, egress: EgressPolicy | None = None
    ) -> None:
        self._machine = machine
        self._command_timeout = command_timeout
        self._egress = egress
        self._ledger = EgressLog(egress.max_bytes if egress else 0)
        self._open = ExitStack()
        self._client: WireClient | None = None
        self.root = ""
        """Absolute sandbox path of the repository's root, where the shell starts."""
        self.browser = False
        """Pages can be browsed: the sandbox has a Chromium."""

    @property
    def isolation(self) -> str:
        """One line that says what separates the sandbox from the host."""
        return self._machine.isolation

    def __enter__(self) -> "Runtime":
        with ExitStack() as opening:
            opening.enter_context(self._machine)
            client = WireClient(self._machine.connect(), self._notices)
            opening.callback(client.close)
            hello = _fatal(client, "hello", {}, wire.Hello, START_SECONDS)
            if hello["protocol"] != wire.PROTOCOL:
                raise SandboxError(
                    f"the action server speaks protocol {hello['protocol']}, "
                    f"this program speaks {wire.PROTOCOL}",
                    "remove the toolbox volume and start again",
                )
            self._client, self.root = client, hello["root"]
            self.browser = hello["browser"]
            self._open = opening.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop and remove the sandbox. May be called again."""
        self._client = None
        self._open.close()

    def take_connections(self) -> list[Egress]:
        """The connections that ended since the last call, as unnumbered events; also after
        `close`, which ends those that are left."""
        return self._ledger.take()

    def checkout(
        self, git_dir_tar: Iterator[bytes], commit: str, branch: str
    ) -> wire.CheckoutResult:
        """Unpack the tar of a clean git directory and check `commit` out in the root."""
        git_dir = f"{self.scratch}/{_CHECKOUT_FOLDER}"
        self._machine.put_archive(self.scratch, wrap_folder(_CHECKOUT_FOLDER))
        self._machine.put_archive(git_dir, git_dir_tar)
        params = {"git_dir": git_dir, "commit": commit, "branch": branch}
        return _fatal(self._running, "checkout", params, wire.CheckoutResult, GIT_SECONDS)

    def interrupt(self) -> None:
        """End the command or cell that runs, if any, because nobody waits for it any more: first
        with Ctrl-C, then the hard way."""
        until = time.monotonic() + INTERRUPT_PATIENCE
        while time.monotonic() < until:
            result = _fatal(self._running, "interrupt", {}, wire.InterruptResult, START_SECONDS)
            if not result["interrupted"]:
                return
            time.sleep(INTERRUPT_SECONDS)

    def export_change(self, base: str, limit: int = MOST_CHANGED) -> wire.ChangeResult:
        """The working tree as git objects on top of `base`; `fetch` takes the bundle out.

        limit: bytes of the largest bundle that will be fetched.
        """
        params = {"base": base, "limit": limit}
        return _fatal(self._running, "export_change", params, wire.ChangeResult, GIT_SECONDS)

    @property
    def scratch(self) -> str:
        """Absolute sandbox path of a folder outside of the repository."""
        return self._machine.scratch

    def put_file(self, name: str, content: bytes) -> None:
        """Write a file into `scratch`."""
        self._machine.put_archive(self._machine.scratch, wrap_file(name, iter([content])))

    def settle(self, base: str) -> wire.SettleResult:
        """Make what was done in the root so far the starting point of the change."""
        return _fatal(self._running, "settle", {"base": base}, wire.SettleResult, GIT_SECONDS)

    def save(self, image: str, labels: Mapping[str, str]) -> bool:
        """Keep the sandbox's files as the image `image`; False where the machine has no images."""
        return self._machine.save(image, labels)

    def fetch(self, path: str, destination: Path, max_bytes: int) -> None:
        """Take one regular file out of the sandbox to `destination`, which must not exist.

        Raises SandboxError for a link, anything but one file, or more than `max_bytes`.
        """
        take_file(self._machine.get_archive(path), destination, max_bytes)

    def start_program(self, command: str, arguments: Sequence[str]) -> Program:
        """Start a program in the root, whose input and output are held here. Raises SandboxError
        where it can't be started."""
        params = {"command": command, "arguments": list(arguments)}
        started = _fatal(self._running, "start_program", params, wire.ProgramStarted, START_SECONDS)
        return Program(self._running, started["program"])

    def execute(self, action: SandboxAction) -> Observation:
        """Do the action. What the agent can put right comes back as ErrorObservation.

        Raises SandboxError when the sandbox is lost.
        """
        try:
            return self._execute(action)
        except wire.WireError as error:
            return ErrorObservation(content=error.message, code=ERROR_CODES[type(action)])

    def _execute(self, action: SandboxAction) -> Observation:
        match action:
            case CmdRun():
                return self._run_command(action)
            case IPythonRunCell():
                return self._run_cell(action)
            case FileRead():
                where = {"path": action.path, "view_range": action.view_range}
                view = self._file("view", wire.ViewResult, where)
                return FileReadResult(
                    content=view["output"], path=action.path, images=_pictures(view["images"])
                )
            case FileWrite():
                file = {"path": action.path, "file_text": action.content}
                made = self._file("create", wire.EditResult, file)
                return FileWriteResult(
                    content=made["output"], path=made["path"], new_hash=made["new_hash"]
                )
            case FileEdit():
                return self._edit(action)
            case BrowseURL(url=url):
                return self._browse({"url": url})
            case BrowseInteractive(code=code):
                return self._browse({"code": code})

    def _run_command(self, action: CmdRun) -> CmdOutput:
        seconds = self._seconds(action.timeout)
        params = {"command": action.command, "timeout": seconds, "is_input": action.is_input}
        result = self._running.call(
            "run_command", params, wire.CommandResult, seconds + GRACE_SECONDS
        )
        return CmdOutput(
            content=_with_notice(result["output"], result["notice"]),
            exit_code=result["exit_code"],
            cwd=result["cwd"],
            timed_out=result["timed_out"],
            omitted=result["omitted"],
            output_file=result["output_file"],
            seconds=result["seconds"],
        )

    def _run_cell(self, action: IPythonRunCell) -> IPythonOutput:
        seconds = self._seconds(action.timeout)
        params = {"code": action.code, "timeout": seconds}
        result = self._running.call("run_cell", params, wire.CellResult, seconds + GRACE_SECONDS)
        return IPythonOutput(
            content=result["output"],
            error=result["error"],
            images=_pictures(result["images"]),
        )

    def _browse(self, what: dict[str, str]) -> BrowserOutput:
        seconds = min(self._command_timeout, BROWSE_SECONDS)
        params = {**what, "timeout": seconds}
        result = self._running.call("browse", params, wire.BrowseResult, seconds + BROWSE_GRACE)
        pictures = _pictures(result["images"])
        return BrowserOutput(
            content=result["output"],
            url=result["url"],
            error=result["error"],
            screenshot=pictures[0] if pictures else None,
        )

    def _edit(self, action: FileEdit) -> FileEditResult:
        given: dict[str, Any]
        match action.command:
            case "str_replace":
                given = {"old_str": action.old_str, "new_str": action.new_str or ""}
            case "insert":
                given = {"insert_line": action.insert_line, "new_str": action.new_str}
            case "undo_edit":
                given = {}
        result = self._file(action.command, wire.EditResult, {"path": action.path, **given})
        return FileEditResult(
            content=result["output"],
            path=result["path"],
            diff=result["diff"],
            old_hash=result["old_hash"],
            new_hash=result["new_hash"],
        )

    def _file(self, method: str, result: type[T], params: dict[str, Any]) -> T:
        return self._running.call(method, params, result, FILE_SECONDS)

    def _seconds(self, asked: float | None) -> float:
        if asked is None or math.isnan(asked) or asked <= 0:
            return self._command_timeout
        return min(asked, MAX_COMMAND_SECONDS)

    @property
    def _notices(self) -> Callable[[Send], Notices] | None:
        if self._egress is None or not self._egress.allowed:
            return None
        return partial(HostTunnels, self._egress, self._ledger)

    @property
    def _running(self) -> WireClient:
        if self._client is None:
            raise SandboxError("the sandbox is not running", "start the run again")
        return self._client


def _fatal(
    client: WireClient, method: str, params: dict[str, Any], result: type[T], seconds: float
) -> T:
    """A call that the run can't go on without."""
    try:
        return client.call(method, params, result, seconds)
    except wire.WireError as error:
        raise SandboxError(
            f"the sandbox could not do `{method}`: {error.message}",
            "see the event log for what ran last, and start the run again",
        ) from error


def _pictures(urls: list[str]) -> tuple[str, ...]:
    return tuple(url for url in urls if url.startswith("data:image/"))


def _with_notice(output: str, notice: str) -> str:
    if not notice:
        return output
    # only the end is trimmed: the first line's indentation is part of the code that a model reads
    return f"{output.rstrip()}\n[{notice}]" if output.strip() else f"[{notice}]"
