"""The protocol between the host and the action server: line-delimited JSON-RPC 2.0.

The host writes one request per line to the server's stdin; the server writes one response per line
to its stdout. Responses may arrive in a different order than the requests, because `interrupt` and
`ping` are answered while a command runs. In text fields, bytes that are not valid UTF-8 are
replaced by U+FFFD; exact bytes are copied as tar streams (put_archive, get_archive) and never go
through the wire. Both ends send under a fair lock, so that the frames of a download can't starve
those of a command.

If the run may use the network, every connection to the proxy in the sandbox is a tunnel on the same
wire. Tunnels use notifications (requests without an id) in both directions, see TUNNEL_METHODS.


Both sides import this module; it is the whole contract. In the sandbox the folder runs under any
name and in any place, so the modules here import each other relatively:
`from .wire import ActionFailed`. Source: https://www.jsonrpc.org/specification
"""

import base64
import binascii
import json
import threading
from typing import Any, Final, NamedTuple, TypedDict


class ActionFailed(Exception):
    """Raised if an action can't be done; the message tells the agent why and what to do.

    It becomes the wire's ACTION_FAILED error. Any other exception but OSError is reported as a
    fault of the server.
    """


class FairLock:
    """A fair mutual exclusion lock, used as a context manager."""

    def __init__(self) -> None:
        # threading.Lock makes no promise of order: a thread that releases it and asks again at once
        # usually gets it, however long another one has waited.
        self._next = threading.Lock()
        self._held = threading.Lock()

    def __enter__(self) -> None:
        # The waiting thread holds `_next`, so a thread that returns quickly queues behind it.
        with self._next:
            self._held.acquire()

    def __exit__(self, *exc: object) -> None:
        self._held.release()


PROTOCOL: Final = 5
"""Version of this protocol, which the server sends in its answer to `hello`."""

# Newlines delimit the frames: JSON escapes a newline inside a string, so a raw one can only be the
# end of a message and no length prefix is needed.
MAX_FRAME: Final = 16 * 1024 * 1024
"""Longest line in bytes that either side accepts. A longer line ends the connection."""

MAX_TEXT: Final = 30_000
"""Maximum number of characters of output in one result. The rest stays in a file in the sandbox."""

# JSON-RPC error codes. The specification does not define ACTION_FAILED and CANCELED; they are in
# the range that it reserves for servers: https://www.jsonrpc.org/specification#error_object
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
ACTION_FAILED: Final = -32000
"""The action failed for a reason that the agent can act on, such as a missing file."""

CANCELED: Final = -32001
"""The request was interrupted while it waited for its turn, so its action was not executed."""

NOT_BEGUN: Final = "interrupted before it began"
"""Message of a CANCELED error."""

INTERNAL_ERROR: Final = -32603
"""The action server itself has a fault."""


class Handshake(TypedDict):
    """Result of `hello` {}, the first request of a connection, sent once."""

    protocol: int
    pid: int
    root: str  # absolute path of the repository's root, where the shell starts
    python: str
    user: str
    browser: str  # Chromium's path, if Playwright's MCP server is installed too; else ""
    proxy: int  # port of the proxy on loopback; 0 if there is none


class CommandResult(TypedDict):
    r"""Result of `run_command` {command: str, timeout: float, is_input: bool}.

    If `is_input` is true, `command` is sent as a line to the running program. "C-c", "C-d", "C-z"
    and "C-\" are keys; an empty command waits for more output. At a timeout the command keeps
    running, so that it can still be answered: exit_code is null and timed_out is true. The next
    `run_command` that is not input first ends the command's process group and says so in `notice`.

    After input, the call also returns as soon as the program has written nothing for 1.5 seconds
    and still runs, because it then probably waits for more input: exit_code is null and timed_out
    is false.
    """

    output: str  # stdout and stderr merged in order; head and tail if longer than MAX_TEXT
    exit_code: int | None
    cwd: str
    timed_out: bool
    omitted: int  # bytes cut from the middle of `output`
    output_file: str | None  # file in the sandbox with the whole output, if something was cut
    notice: str  # "" or sentences for the agent (the shell was restarted, ...)
    seconds: float


class InterruptResult(TypedDict):
    """Result of `interrupt` {}, which sends Ctrl-C to the running command or cell.

    A second `interrupt` kills it. Requests of these kinds that still wait in the queue are
    cancelled. `ping` {} and `shutdown` {} have an empty result.
    """

    interrupted: bool  # false if nothing was running or waiting


class CellResult(TypedDict):
    """Result of `run_cell` {code: str, timeout: float}.

    A cell is interrupted at its timeout.
    """

    output: str
    error: bool
    images: list[str]  # data: URLs
    omitted: int


class ViewResult(TypedDict):
    """Result of `view` {path: str, view_range: [int, int] | null}. Lines are numbered from 1."""

    output: str
    images: list[str]  # data: URL of the image, if the file is one and is not too large


class TextResult(TypedDict):
    """Result of a method that has no other one: the text for the agent."""

    output: str


class EditResult(TypedDict):
    """Result of the editing methods.

    These are `create` {path, file_text}, `str_replace` {path, old_str, new_str}, `insert` {path,
    insert_line, new_str} and `undo_edit` {path}.
    """

    path: str
    output: str  # text for the agent: the changed lines with their numbers
    diff: str  # one unified hunk, at most 10 kB
    old_hash: str  # SHA-256 of the file before the edit; "" for a new file
    new_hash: str


class ReportedChanges(TypedDict):
    """The part of an action's result that says what changed in the working tree.

    `report_changes` {} starts the reports with the present state and has an empty result. The
    server reads that state in the background, and the next request waits for it. From then on each
    result of a method that executes an action, and can change files, names what has changed since
    the last one.
    """

    changed: list[str] | None  # relative to the root, sorted, at most 50; null if it is not known
    changed_count: int  # of all changed paths
    differing: int  # number of paths that differ from the checkout now
    repositories: list[str]  # new folders that are git repositories of their own


class CommandReport(CommandResult, ReportedChanges):
    """Complete result of `run_command`."""


class CellReport(CellResult, ReportedChanges):
    """Complete result of `run_cell`."""


class EditReport(EditResult, ReportedChanges):
    """Complete result of the editing methods."""


class TextReport(TextResult, ReportedChanges):
    """Complete result of a method without another one, if it can change files."""


class CheckoutResult(TypedDict):
    """Result of `checkout` {git_dir: path, commit: str, branch: str}.

    The host has copied a clean git directory into the sandbox. The server checks it out in the root
    and removes the copy.
    """

    commit: str
    files: int


class ChangeResult(TypedDict):
    """Result of `export_change` {base: str}: the working tree as git objects.

    The tree is built with a git directory, index and configuration of the
    server's own (never the agent's `.git`), starting from `base`, so that ignored files stay out
    and tracked files stay in.
    """

    tree: str
    commit: str  # carrier commit with `base` as its parent; equals `base` if nothing changed
    bundle: str | None  # path of the bundle in the sandbox; null if nothing changed
    size: int  # size of the bundle in bytes
    left_out: list[str]  # paths that git could not add, which stay as in `base`; at most 100
    generated: list[str]  # caches and build output not exported; folders end with "/"; max. 100


class BaselineResult(TypedDict):
    """Result of `set_baseline` {base: str}: makes the current state of the root the starting point.

    Changes to tracked files are undone. Untracked files stay where they are and are kept out of the
    change.
    """

    restored: list[str]  # tracked paths that had been changed, at most 100
    untracked: int


class ProgramStarted(TypedDict):
    """Result of `start_program` {command: str, arguments: list[str]}.

    The program starts in the root with the shell's environment. The other program methods refer to
    it by its number.
    """

    program: int


class ProgramOutput(TypedDict):
    """Result of `read_program` {program: int, timeout: float}: the next output of a program.

    The call returns as soon as there is output, or with empty data at the timeout. `write_program`
    {program: int, data: str} (base64) and `end_program` {program: int} have an empty result.
    """

    data: str  # base64 of at most PROGRAM_CHUNK bytes
    ended: bool  # true if the program has closed its output
    stderr_tail: str  # the end of its standard error


PROGRAM_METHODS: Final = frozenset(
    {"start_program", "read_program", "write_program", "end_program"}
)
"""Methods that are answered while a command runs, and that may wait at the same time."""

PROGRAM_CHUNK: Final = 64 * 1024
"""Maximum number of bytes of a program's output in one result, and of its input in one request."""

MAX_PROGRAMS: Final = 8
"""Maximum number of programs that run at the same time."""

INTERRUPTIBLE: Final = {"run_command", "run_cell"}
"""Methods that `interrupt` ends."""

TUNNEL_METHODS: Final = {
    "tunnel_open": ("host", "port"),
    "tunnel_opened": (),
    "tunnel_data": ("data",),
    "tunnel_end": (),
    "tunnel_credit": ("count",),
    "tunnel_close": ("status", "reason"),
}
"""The notifications of tunnels and their parameters.

Each also has `tunnel`, the tunnel's number. The sandbox opens a tunnel under a number larger than
all earlier ones; the host answers with `tunnel_opened` or `tunnel_close`. `data` is base64.
`tunnel_end` says that no more data follows from its sender, like a TCP half-close. `tunnel_close`
ends both directions at once; each side sends it once, and the tunnel is gone when both have. Its
`status` is the HTTP status that describes why and `reason` the text for it; after a regular end,
200 and "". Each side may send TUNNEL_WINDOW bytes of data, plus the `count` of every
`tunnel_credit` that it receives.
"""

# Flow control by credit, as in HTTP/2 (https://www.rfc-editor.org/rfc/rfc9113#section-5.2). All
# tunnels and all commands share one pipe. Without a window per tunnel, one slow reader would either
# block the pipe or make the other side buffer without a limit.
TUNNEL_WINDOW: Final = 256 * 1024
"""Bytes of one tunnel and direction that may be in transit; also the most that a side buffers."""

TUNNEL_CHUNK: Final = 32 * 1024
"""Maximum number of bytes in one `tunnel_data`.

It bounds the time that a command's frame waits behind one of a tunnel.
"""

MAX_TUNNELS: Final = 128
"""Maximum number of open tunnels. Further connections wait inside the sandbox."""

MAX_REASON: Final = 300
"""Maximum number of characters in the reason of a `tunnel_close`."""

_MAX_NUMBER: Final = 2**31
_MAX_HOST: Final = 1024


class WireError(Exception):
    """Raised for a frame that is not valid JSON-RPC, and for an error response.

    code: one of the JSON-RPC error codes above.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def encode(message: dict[str, Any]) -> bytes:
    """Return the message as one frame: a line of ASCII JSON with its newline."""
    text = json.dumps(message, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def request_frame(id: int, method: str, params: dict[str, Any]) -> bytes:
    """Return a request frame."""
    return encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def decode(line: bytes) -> dict[str, Any]:
    """Return the message in a frame.

    Raises WireError (PARSE_ERROR or INVALID_REQUEST) if it is too long or is not a JSON-RPC 2.0
    object.
    """
    if len(line) > MAX_FRAME:
        raise WireError(PARSE_ERROR, f"frame of {len(line)} bytes is over {MAX_FRAME}")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(PARSE_ERROR, f"not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise WireError(INVALID_REQUEST, "not a JSON-RPC 2.0 object")
    return message


class TunnelFrame(NamedTuple):
    """A validated tunnel notification. Only the fields that belong to its method are set."""

    method: str
    tunnel: int
    host: str = ""
    port: int = 0
    data: bytes = b""
    count: int = 0  # type: ignore[assignment]  # instead of the method of tuples
    status: int = 200
    reason: str = ""


def tunnel_notice(frame: TunnelFrame) -> bytes:
    """Return the notification as a frame of the wire."""
    params: dict[str, Any] = {"tunnel": frame.tunnel}
    for name in TUNNEL_METHODS[frame.method]:
        value = getattr(frame, name)
        params[name] = base64.b64encode(value).decode("ascii") if name == "data" else value
    return encode({"jsonrpc": "2.0", "method": frame.method, "params": params})


def tunnel_frame(method: str, params: object) -> TunnelFrame:
    """Return the validated notification with this method and these parameters.

    Raises WireError (INVALID_PARAMS) if the parameters break the contract.
    """
    if not isinstance(params, dict):
        raise WireError(INVALID_PARAMS, "params must be an object")
    fields: dict[str, Any] = {"tunnel": _number_field(params, "tunnel", _MAX_NUMBER)}
    for name in TUNNEL_METHODS[method]:
        if name == "data":
            fields[name] = _decode_data(params.get(name))
        elif name in ("host", "reason"):
            fields[name] = _text_field(params, name, _MAX_HOST)
        else:
            fields[name] = _number_field(params, name, {"port": 65535, "status": 599}.get(name))
    return TunnelFrame(method, **fields)


def _number_field(params: dict[str, Any], name: str, limit: int | None) -> int:
    value = params.get(name)
    if type(value) is not int or not 0 < value <= (limit or TUNNEL_WINDOW):
        raise WireError(INVALID_PARAMS, f"{name} must be a number up to {limit or TUNNEL_WINDOW}")
    return value


def _text_field(params: dict[str, Any], name: str, max_characters: int) -> str:
    value = params.get(name)
    if not isinstance(value, str) or len(value) > max_characters:
        raise WireError(
            INVALID_PARAMS, f"{name} must be a text of at most {max_characters} characters"
        )
    return value


def _decode_data(value: object) -> bytes:
    """Return the decoded data of a `tunnel_data`. Raises WireError (INVALID_PARAMS)."""
    if not isinstance(value, str) or not 0 < len(value) <= 2 * TUNNEL_CHUNK:
        raise WireError(INVALID_PARAMS, "data must be base64, and not too much of it")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WireError(INVALID_PARAMS, f"data is not base64: {error}") from error
    if not 0 < len(data) <= TUNNEL_CHUNK:
        raise WireError(INVALID_PARAMS, f"data must be up to {TUNNEL_CHUNK} bytes")
    return data
