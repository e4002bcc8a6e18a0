"""`Runtime`: the interface through which the rest of the program uses a sandbox on any machine.

It executes actions and returns observations, puts the checkout in and takes the change out. The
events that it returns have no number yet; the event stream assigns it.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from resolver.config.templates import render
from resolver.errors import SandboxError
from resolver.events.actions import (
    CmdRun,
    FileEdit,
    FileRead,
    FileWrite,
    IPythonRunCell,
    SandboxAction,
)
from resolver.events.base import EventBase, ObservationBase
from resolver.events.lifecycle import Egress
from resolver.events.log import own_fields
from resolver.events.observations import ChangedPaths, ErrorObservation
from resolver.models.verification import CheckService
from resolver.runtime.base import BROWSER_OPTIONS, BrowserProcess, Machine
from resolver.runtime.client import (
    EmptyResult,
    Notices,
    Program,
    Send,
    WireClient,
    take_file,
    wrap_file,
)
from resolver.runtime.egress import EgressLog, EgressPolicy
from resolver.runtime.tunnels import HostTunnels
from resolver.sandbox import wire
from resolver.sandbox.environment import BROWSER_SERVER

logger = logging.getLogger("resolver.runtime")

T = TypeVar("T")

MAX_COMMAND_SECONDS: Final = 3600.0
"""Upper limit of the time that an agent may request for one command or cell."""

START_SECONDS: Final = 60.0
FILE_SECONDS: Final = 60.0
GIT_SECONDS: Final = 600.0
ANSWER_SECONDS: Final = 30.0
"""Time added to a command's own timeout for the server to interrupt it and answer."""

INTERRUPT_SECONDS: Final = 0.5
"""Pause between two interrupt requests. The second and later requests kill the program."""

INTERRUPT_RETRY_SECONDS: Final = 30.0
"""Seconds after which `Runtime.interrupt` stops repeating its request. A shell that is just being
started needs part of that time."""

_CHECKOUT_FOLDER: Final = "checkout.git"

GitDirTar = Callable[[str], Iterator[bytes]]
"""Returns a tar stream of a clean git directory, which has the given name in the tar."""


class Runtime:
    """A running sandbox. Use it as a context manager: leaving stops everything, and has it removed.

    command_timeout: seconds that a command or cell may take if the action does not set a timeout.
    egress: the hosts that the sandbox may connect to. It has an effect only if the machine's spec
        allows egress too.
    answer_seconds: time after a command's own timeout in which the sandbox has to answer.
    """

    def __init__(
        self,
        machine: Machine,
        command_timeout: float,
        egress: EgressPolicy | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._machine = machine
        self._answer_seconds = answer_seconds
        self._command_timeout = command_timeout
        self._egress = egress
        self._egress_log = EgressLog(egress.max_bytes if egress else 0)
        self._resources = ExitStack()
        self._client: WireClient | None = None
        self.root = ""
        """Absolute path of the repository's root in the sandbox, where the shell starts."""
        self._own_browser = ""
        self._proxy_port = 0

    @property
    def isolation(self) -> str:
        """One line that says what separates the sandbox from the host."""
        return self._machine.isolation

    def __enter__(self) -> "Runtime":
        with ExitStack() as opening:
            opening.enter_context(self._machine)
            client = WireClient(self._machine.connect(), self._notice_receiver)
            opening.callback(client.close)
            hello = _call(client, "hello", {}, wire.Handshake, START_SECONDS)
            if hello["protocol"] != wire.PROTOCOL:
                raise SandboxError(
                    f"the action server speaks protocol {hello['protocol']}, "
                    f"this program speaks {wire.PROTOCOL}",
                    "remove the toolbox volume and start again",
                )
            self._client, self.root = client, hello["root"]
            self._own_browser, self._proxy_port = hello["browser"], hello["proxy"]
            self._resources = opening.pop_all()
        return self

    def __exit__(self, error_type: type[BaseException] | None, *exc: object) -> None:
        try:
            self.close()
        except SandboxError as error:
            # What ended the work says whether another sandbox can continue it.
            if error_type is None or not issubclass(error_type, SandboxError):
                raise
            logger.warning("%s", error.what)

    def close(self) -> None:
        """Stop and remove the sandbox. May be called more than once."""
        self._client = None
        self._resources.close()

    def take_connections(self) -> list[Egress]:
        """Return the connections that ended since the last call, as events without a number.

        It may be called after `close`, which ends the connections that are still open.
        """
        return self._egress_log.take()

    def checkout(self, git_dir_tar: GitDirTar, commit: str, branch: str) -> wire.CheckoutResult:
        """Unpack a clean git directory and check `commit` out in the root."""
        # One archive, because an engine starts a process of its own for each: 60 ms or more.
        self._machine.put_archive(self.scratch, git_dir_tar(_CHECKOUT_FOLDER))
        git_dir = f"{self.scratch}/{_CHECKOUT_FOLDER}"
        params = {"git_dir": git_dir, "commit": commit, "branch": branch}
        return _call(self._wire, "checkout", params, wire.CheckoutResult, GIT_SECONDS)

    def interrupt(self) -> None:
        """End the running command or cell, if there is one, because its result is no longer needed.

        The first request sends Ctrl-C, the later ones kill. Returns after INTERRUPT_RETRY_SECONDS
        seconds even if something still runs.
        """
        deadline = time.monotonic() + INTERRUPT_RETRY_SECONDS
        while time.monotonic() < deadline:
            result = _call(self._wire, "interrupt", {}, wire.InterruptResult, START_SECONDS)
            if not result["interrupted"]:
                return
            time.sleep(INTERRUPT_SECONDS)

    def export_change(self, base: str) -> wire.ChangeResult:
        """Export the working tree as git objects on top of `base` and return their description.

        `fetch` takes the bundle out of the sandbox.
        """
        return _call(self._wire, "export_change", {"base": base}, wire.ChangeResult, GIT_SECONDS)

    @property
    def scratch(self) -> str:
        """Absolute path of a folder in the sandbox that is outside the repository."""
        return self._machine.scratch

    def put_file(self, name: str, content: bytes) -> None:
        """Write a file into `scratch`."""
        self._machine.put_archive(self._machine.scratch, wrap_file(name, iter([content])))

    def set_baseline(self, base: str) -> wire.BaselineResult:
        """Make the present state of the root the starting point of the change.

        Changes to tracked files are undone; untracked files stay, but outside of the change. Used
        after the environment's set-up.
        """
        return _call(self._wire, "set_baseline", {"base": base}, wire.BaselineResult, GIT_SECONDS)

    def run_services(
        self, services: Sequence[CheckService], seconds: float, cancelled: Callable[[], bool]
    ) -> AbstractContextManager[None]:
        """Run services alongside the sandbox while the context is open: `Machine.run_services`."""
        return self._machine.run_services(services, seconds, cancelled)

    def report_changes(self) -> None:
        """Begin to report the changed paths in observations, compared with the present state."""
        _call(self._wire, "report_changes", {}, EmptyResult, GIT_SECONDS)

    def save(self, image: str, labels: Mapping[str, str]) -> bool:
        """Save the sandbox's files as the image `image`; False if the machine has no images."""
        return self._machine.save(image, labels)

    def fetch(self, path: str, destination: Path, max_bytes: int) -> None:
        """Copy one regular file from the sandbox to `destination`, which must not exist.

        Raises SandboxError for a link, for anything other than a single file, and for a file of
        more than `max_bytes` bytes.
        """
        take_file(self._machine.get_archive(path), destination, max_bytes)

    def start_program(self, command: str, arguments: Sequence[str]) -> Program:
        """Start a program in the root, with its input and output connected to the host.

        Raises SandboxError if it can't be started.
        """
        params = {"command": command, "arguments": list(arguments)}
        started = _call(self._wire, "start_program", params, wire.ProgramStarted, START_SECONDS)
        return Program(self._wire, started["program"])

    @property
    def has_browser(self) -> bool:
        """True if `start_browser` finds Playwright's MCP server, in an image or in the sandbox."""
        return bool(self._machine.browser_image or self._own_browser)

    def start_browser(self) -> BrowserProcess:
        """Start Playwright's MCP server, with its input and output connected to the host.

        It shares the sandbox's network, whose only way out is the proxy. Raises SandboxError.
        """
        if self._machine.browser_image:
            return self._machine.start_browser(self._proxy_port)
        # Its default folder for files would be in the repository.
        places = ["--output-dir", f"{self.scratch}/browser", "--executable-path", self._own_browser]
        return self.start_program(BROWSER_SERVER, [*BROWSER_OPTIONS, *places])

    def execute(self, action: SandboxAction) -> ObservationBase:
        """Execute the action and return its observation.

        An error that the agent can correct is returned as an ErrorObservation. Raises SandboxLost
        if the sandbox ends or does not answer in time, SandboxError if it breaks the protocol.
        """
        method, parameters, result_type, seconds = self._request(action)
        try:
            result = self._wire.call(method, parameters, result_type, seconds)
        except wire.WireError as error:
            code = "interrupted" if error.code == wire.CANCELED else action.error_code
            return ErrorObservation(content=error.message, code=code)
        return _build_observation(action, result)

    def _request(self, action: SandboxAction) -> tuple[str, dict[str, Any], Any, float]:
        """Return the method that executes the action, its parameters, result type and time limit.

        The limit is in seconds.
        """
        match action:
            case CmdRun(command=command):
                seconds = self._timeout(action.timeout)
                request = {"command": command, "timeout": seconds, "is_input": action.is_input}
                return "run_command", request, wire.CommandReport, seconds + self._answer_seconds
            case IPythonRunCell(code=code):
                seconds = self._timeout(action.timeout)
                request = {"code": code, "timeout": seconds}
                return "run_cell", request, wire.CellReport, seconds + self._answer_seconds
            case FileRead():
                return "view", own_fields(action), wire.ViewResult, FILE_SECONDS
            case FileWrite(path=path, content=content):
                request = {"path": path, "file_text": content}
                return "create", request, wire.EditReport, FILE_SECONDS
            case FileEdit(command=command, path=path):
                request = {"path": path, **_edit_parameters(action)}
                return command, request, wire.EditReport, FILE_SECONDS
            case _:
                if action.method is None:
                    raise TypeError(f"no method executes {type(action).__name__}")
                result_type: Any = wire.TextReport if action.changes_files else wire.TextResult
                return action.method, own_fields(action), result_type, FILE_SECONDS

    def _timeout(self, requested: float | None) -> float:
        if requested is None or math.isnan(requested) or requested <= 0:
            return self._command_timeout
        return min(requested, MAX_COMMAND_SECONDS)

    @property
    def _notice_receiver(self) -> Callable[[Send], Notices] | None:
        if self._egress is None or not self._egress.allowed:
            return None
        return partial(HostTunnels, self._egress, self._egress_log)

    @property
    def _wire(self) -> WireClient:
        if self._client is None:
            raise SandboxError("the sandbox is not running", "start the run again")
        return self._client


def _call(
    client: WireClient, method: str, params: dict[str, Any], result: type[T], seconds: float
) -> T:
    """Call a method whose failure ends the run: a WireError is raised as SandboxError."""
    try:
        return client.call(method, params, result, seconds)
    except wire.WireError as error:
        raise SandboxError(
            f"the sandbox could not do `{method}`: {error.message}",
            "see the event log for what ran last, and start the run again",
        ) from error


def _edit_parameters(action: FileEdit) -> dict[str, Any]:
    match action.command:
        case "str_replace":
            return {"old_str": action.old_str, "new_str": action.new_str or ""}
        case "insert":
            return {"insert_line": action.insert_line, "new_str": action.new_str}
        case "undo_edit":
            return {}


def _build_observation(action: SandboxAction, result: Mapping[str, Any]) -> ObservationBase:
    """Return the observation, with the fields that the result has, else those of the action."""
    values = {
        **own_fields(action),
        **result,
        "content": _with_notice(result["output"], _notice(result)),
        "changed": _changed_paths(result) if "changed" in result else None,
        "images": _image_urls(result.get("images", [])),
    }
    names = action.observation.model_fields.keys() - EventBase.model_fields.keys() - {"kind"}
    return action.observation(**{name: values[name] for name in names & values.keys()})


def _notice(result: Mapping[str, Any]) -> str:
    """Return what the agent is told about a result besides its output; "" for nothing."""
    notices = [result.get("notice", "")]
    if paths := result.get("repositories"):
        text = render("agent/inner_repository.md.j2", paths=paths)
        notices.append(text.strip())
    return " ".join(filter(None, notices))


def _changed_paths(result: Mapping[str, Any]) -> ChangedPaths | None:
    if result["changed"] is None:
        return None
    return ChangedPaths(
        paths=tuple(result["changed"]),
        count=result["changed_count"],
        differing=result["differing"],
    )


def _image_urls(urls: list[str]) -> tuple[str, ...]:
    return tuple(url for url in urls if url.startswith("data:image/"))


def _with_notice(output: str, notice: str) -> str:
    if not notice:
        return output
    # Only the end is trimmed: the indentation of the first line is part of the code that a model
    # reads.
    return f"{output.rstrip()}\n[{notice}]" if output.strip() else f"[{notice}]"
