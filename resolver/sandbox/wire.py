"""The wire between host and sandbox: line-delimited JSON-RPC 2.0, and its method table.

One request a line on the server's stdin, one response a line on its stdout; responses may
come in another order than the requests (`interrupt` and `ping` are answered while a command
runs). Bytes that are not UTF-8 are carried with U+FFFD in text fields; exact bytes travel as
tar streams (put_archive, get_archive), never through the wire.

Both sides import this module; it is the whole contract. Source: https://www.jsonrpc.org/specification
"""

import json
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
    """Result of `interrupt` {}: Ctrl-C for the command or cell that runs now. `ping` {} and
    `shutdown` {} have an empty result."""

    interrupted: bool  # false when nothing ran


class CellResult(TypedDict):
    """Result of `run_cell` {code: str, timeout: float}. A cell is interrupted at its timeout."""

    output: str
    error: bool
    images: list[str]  # data: URLs
    omitted: int


class ViewResult(TypedDict):
    """Result of `view` {path: str, view_range: [int, int] | null}. Lines are numbered from 1."""

    output: str


class EditResult(TypedDict):
    """Result of `create` {path, file_text}, `str_replace` {path, old_str, new_str},
    `insert` {path, insert_line, new_str} and `undo_edit` {path}."""

    path: str
    output: str  # what the agent is shown: the changed lines with numbers
    diff: str  # one unified hunk, at most 10 kB
    old_hash: str  # SHA-256 of the file before; "" for a new file
    new_hash: str


class CheckoutResult(TypedDict):
    """Result of `checkout` {git_dir_archive: path, commit: str, branch: str}: the host has put a
    tar of a clean git directory into the sandbox; it is unpacked and checked out in the root."""

    commit: str
    files: int


class ChangeResult(TypedDict):
    """Result of `export_change` {base: str}: the working tree as git objects.

    The tree is built with a git directory, index and configuration of the server's own (never the
    agent's `.git`), starting from `base`, so that ignored files stay out and tracked ones stay in.
    """

    tree: str
    commit: str  # carrier commit, parent `base`; equals base when nothing changed
    bundle: str | None  # sandbox path of the bundle; null when nothing changed
    size: int  # bytes of the bundle


METHODS: Final = frozenset(
    {
        "hello", "ping", "interrupt", "shutdown",
        "run_command", "run_cell", "view", "create", "str_replace", "insert", "undo_edit",
        "checkout", "export_change",
    }
)  # fmt: skip


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
