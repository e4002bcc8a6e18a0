"""The wire between host and sandbox: line-delimited JSON-RPC 2.0, and its method table.

One request a line on the server's stdin, one response a line on its stdout; responses may
come in another order than the requests (`interrupt` and `ping` are answered while a command
runs). Bytes that are not UTF-8 are carried with U+FFFD in text fields; exact bytes travel as
tar streams (put_archive, get_archive), never through the wire.

Where a run is allowed out, each connection of the sandbox's proxy is a tunnel on the same wire:
notifications (requests without an id) in both directions, see TUNNEL_METHODS.

Both sides import this module; it is the whole contract. Source: https://www.jsonrpc.org/specification
"""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final, TypedDict

PROTOCOL: Final = 1
MAX_FRAME: Final = 16 * 1024 * 1024
"""Longest line either side accepts, in bytes. A longer one ends the connection."""

MAX_TEXT: Final = 30_000
"""Characters of output that go into one result; the rest stays in a file in the sandbox."""

# JSON-RPC error codes; the first four are the specification's.
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
ACTION_FAILED: Final = -32000
"""The action could not be done and the agent can do something about it (no such file...)."""
INTERNAL_ERROR: Final = -32603
"""A fault of the action server itself."""


class Hello(TypedDict):
    """Result of `hello` {}: sent once, first."""

    protocol: int
    pid: int
    root: str  # absolute path of the repository's root, where the shell starts
    python: str
    user: str
    browser: bool  # `browse` finds a Chromium


class CommandResult(TypedDict):
    """Result of `run_command` {command: str, timeout: float, is_input: bool}.

    `is_input` sends `command` as a line to the running program ("C-c", "C-d", "C-z" are keys; an
    empty command waits for more output). A timeout leaves the command running when it can still
    be answered: exit_code is null and timed_out true; the next `run_command` that is not input
    ends its process group first and says so.

    After input the call also ends when the program has been quiet for 1.5 seconds and still runs
    (it waits for more): exit_code is null and timed_out false.
    """

    output: str  # stdout and stderr merged in order; head and tail when longer than MAX_TEXT
    exit_code: int | None
    cwd: str
    timed_out: bool
    omitted: int  # bytes cut from the middle of `output`
    output_file: str | None  # the whole output, when something was cut
    notice: str  # "" or a sentence for the agent (the shell was restarted, ...)
    seconds: float


class InterruptResult(TypedDict):
    """Result of `interrupt` {}: Ctrl-C for the command, cell or page that runs now, the second
    time its end; those that wait for it are not begun. `ping` {} and `shutdown` {} have an empty
    result."""

    interrupted: bool  # false when none was under way


class CellResult(TypedDict):
    """Result of `run_cell` {code: str, timeout: float}. A cell is interrupted at its timeout."""

    output: str
    error: bool
    images: list[str]  # data: URLs
    omitted: int


class BrowseResult(TypedDict):
    """Result of `browse` {code: str, timeout: float}, or with `url: str` in the place of `code`.

    ACTION_FAILED where the sandbox has no Chromium.
    """

    output: str  # the page: what happened, address, tabs, accessibility tree with element ids
    error: bool  # an action was not done; `output` begins with why
    url: str  # of the active tab
    images: list[str]  # data: URLs; one after screenshot()


class ViewResult(TypedDict):
    """Result of `view` {path: str, view_range: [int, int] | null}. Lines are numbered from 1."""

    output: str
    images: list[str]  # data: URL of a picture that is not too large


class EditResult(TypedDict):
    """Result of `create` {path, file_text}, `str_replace` {path, old_str, new_str},
    `insert` {path, insert_line, new_str} and `undo_edit` {path}."""

    path: str
    output: str  # what the agent is shown: the changed lines with numbers
    diff: str  # one unified hunk, at most 10 kB
    old_hash: str  # SHA-256 of the file before; "" for a new file
    new_hash: str


class CheckoutResult(TypedDict):
    """Result of `checkout` {git_dir: path, commit: str, branch: str}: the host has put a clean
    git directory into the sandbox, which is checked out in the root and removed."""

    commit: str
    files: int


class ChangeResult(TypedDict):
    """Result of `export_change` {base: str, limit: int}: the working tree as git objects.

    What may be above `limit` bytes is carried as differences from `base` where that is less.
    The tree is built with a git directory, index and configuration of the server's own (never the
    agent's `.git`), starting from `base`, so that ignored files stay out and tracked ones stay in.
    """

    tree: str
    commit: str  # carrier commit, parent `base`; equals base when nothing changed
    bundle: str | None  # sandbox path of the bundle; null when nothing changed
    size: int  # bytes of the bundle
    left_out: list[str]  # paths that could not be taken and stay as in `base`; at most 100
    generated: list[
        str
    ]  # caches and the like that were not taken; folders end with "/"; at most 100


class SettleResult(TypedDict):
    """Result of `settle` {base: str}: what was done in the root so far is made the starting point.

    Changes to tracked files are undone; what is untracked stays, and stays out of the change.
    """

    restored: list[str]  # tracked paths that had been changed, the first hundred
    untracked: int


class ProgramStarted(TypedDict):
    """Result of `start_program` {command: str, arguments: list[str]}: a program in the root, with
    the shell's environment. Other methods name it by its number."""

    program: int


class ProgramOutput(TypedDict):
    """Result of `read_program` {program: int, timeout: float}: what it has written, as soon as
    there is something; empty when there was nothing in that time. `write_program`
    {program: int, data: str} and `end_program` {program: int} have an empty result."""

    data: str  # base64, at most PROGRAM_CHUNK bytes
    ended: bool  # it has closed its output
    words: str  # the last that it wrote to standard error


PROGRAM_METHODS: Final = frozenset(
    {"start_program", "read_program", "write_program", "end_program"}
)
"""These are answered while a command runs, and may wait beside one another."""

PROGRAM_CHUNK: Final = 64 * 1024
"""Most bytes of a program's output in one result, and of its input in one request."""

MAX_PROGRAMS: Final = 8
"""Programs at once."""

INTERRUPTIBLE: Final = {"run_command", "run_cell", "browse"}
"""What `interrupt` ends."""

METHODS: Final = PROGRAM_METHODS | {
    "hello", "ping", "interrupt", "shutdown",
    "run_command", "run_cell", "browse", "view", "create", "str_replace", "insert", "undo_edit",
    "checkout", "settle", "export_change",
}  # fmt: skip

TUNNEL_METHODS: Final = {
    "tunnel_open": ("host", "port"),
    "tunnel_opened": (),
    "tunnel_data": ("data",),
    "tunnel_end": (),
    "tunnel_credit": ("count",),
    "tunnel_close": ("status", "reason"),
}
"""The notifications of tunnels, each with `tunnel` (its number) and these parameters.

The sandbox opens a tunnel under a number larger than all before; the host answers with `opened`
or `close`. `data` is base64. `end` says that no more data follows from this side. `close` ends
both directions at once; each side sends it once, and the tunnel is gone when both have. Its
`status` is the HTTP status that says why, `reason` the words, both plain when all went well.
Each side may send WINDOW bytes of data, and `count` more with every `credit` from the other.
"""

TUNNEL_WINDOW: Final = 256 * 1024
"""Bytes of one tunnel and direction that may be on their way; what a side buffers at most."""

TUNNEL_CHUNK: Final = 32 * 1024
"""Most bytes in one `tunnel_data`: what a command's frame waits for at most on its way."""

MAX_TUNNELS: Final = 128
"""Tunnels at once; more connections wait inside for their turn."""

MAX_REASON: Final = 300
"""Characters of a `tunnel_close`'s reason."""

_MAX_NUMBER: Final = 2**31
_MAX_HOST: Final = 1024


class WireError(Exception):
    """A frame that is not valid JSON-RPC, or an error response. `code` as above."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def encode(message: dict[str, Any]) -> bytes:
    """One frame: a line of ASCII JSON with its newline."""
    text = json.dumps(message, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def request(id: int, method: str, params: dict[str, Any]) -> bytes:
    """A request frame."""
    return encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def decode(line: bytes) -> dict[str, Any]:
    """One frame back to an object. Raises WireError(PARSE_ERROR or INVALID_REQUEST)."""
    if len(line) > MAX_FRAME:
        raise WireError(PARSE_ERROR, f"frame of {len(line)} bytes is over {MAX_FRAME}")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(PARSE_ERROR, f"not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise WireError(INVALID_REQUEST, "not a JSON-RPC 2.0 object")
    return message


@dataclass(frozen=True)
class TunnelFrame:
    """A tunnel's notification, checked. Only the fields of its method mean something."""

    method: str
    tunnel: int
    host: str = ""
    port: int = 0
    data: bytes = b""
    count: int = 0
    status: int = 200
    reason: str = ""


def tunnel_notice(frame: TunnelFrame) -> bytes:
    """The notification as a frame of the wire."""
    params: dict[str, Any] = {"tunnel": frame.tunnel}
    for name in TUNNEL_METHODS[frame.method]:
        value = getattr(frame, name)
        params[name] = base64.b64encode(value).decode("ascii") if name == "data" else value
    return encode({"jsonrpc": "2.0", "method": frame.method, "params": params})


def tunnel_frame(method: str, params: object) -> TunnelFrame:
    """What a notification says. Raises WireError(INVALID_PARAMS) where it breaks the contract."""
    if not isinstance(params, dict):
        raise WireError(INVALID_PARAMS, "params must be an object")
    fields: dict[str, Any] = {"tunnel": _whole(params, "tunnel", _MAX_NUMBER)}
    for name in TUNNEL_METHODS[method]:
        if name == "data":
            fields[name] = _payload(params.get(name))
        elif name in ("host", "reason"):
            fields[name] = _short(params, name, _MAX_HOST)
        else:
            fields[name] = _whole(params, name, {"port": 65535, "status": 599}.get(name))
    return TunnelFrame(method, **fields)


def _whole(params: dict[str, Any], name: str, most: int | None) -> int:
    value = params.get(name)
    if type(value) is not int or not 0 < value <= (most or TUNNEL_WINDOW):
        raise WireError(INVALID_PARAMS, f"{name} must be a number up to {most or TUNNEL_WINDOW}")
    return value


def _short(params: dict[str, Any], name: str, most: int) -> str:
    value = params.get(name)
    if not isinstance(value, str) or len(value) > most:
        raise WireError(INVALID_PARAMS, f"{name} must be a text of at most {most} characters")
    return value


def _payload(value: object) -> bytes:
    if not isinstance(value, str) or not 0 < len(value) <= 2 * TUNNEL_CHUNK:
        raise WireError(INVALID_PARAMS, "data must be base64, and not too much of it")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WireError(INVALID_PARAMS, f"data is not base64: {error}") from error
    if not 0 < len(data) <= TUNNEL_CHUNK:
        raise WireError(INVALID_PARAMS, f"data must be up to {TUNNEL_CHUNK} bytes")
    return data
