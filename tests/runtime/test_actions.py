"""Tests of actions that `Runtime` has no case for: their declaration says all that it needs."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.runtime.channel import SocketChannel
from resolver.runtime.runtime import Runtime
from resolver.sandbox import wire

HELLO = {
    "protocol": wire.PROTOCOL, "pid": 7, "root": "/workspace", "python": "3.11", "user": "root",
    "browser": "", "proxy": 0,
}  # fmt: skip


class FrobnicateFile(SandboxAction):
    """Counts the lines of a file."""

    kind: Literal["frobnicate_file"] = "frobnicate_file"
    observation = o.FileReadResult
    method = "frobnicate_file"
    changes_files = False
    path: str
    pattern: str = ""


class SortLines(SandboxAction):
    """Sorts the lines of a file."""

    kind: Literal["sort_lines"] = "sort_lines"
    observation = o.FileWriteResult
    method = "sort_lines"
    error_code = "sort"
    path: str


class AnsweringMachine:
    """A machine whose server answers each request with the next of these fields."""

    isolation = "none"
    scratch = "/tmp"

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._answers = [{"result": HELLO}, *answers]
        ours, self._theirs = socket.socketpair()
        self._channel = SocketChannel(ours)
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "AnsweringMachine":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread.join(60)

    def connect(self) -> SocketChannel:
        return self._channel

    def _serve(self) -> None:
        with self._theirs, self._theirs.makefile("rb") as lines:
            for answer, line in zip(self._answers, lines, strict=False):
                request = wire.decode(line)
                self.requests.append(request)
                self._theirs.sendall(wire.encode({"jsonrpc": "2.0", "id": request["id"], **answer}))


@contextmanager
def open_runtime(machine: AnsweringMachine) -> Iterator[Runtime]:
    with Runtime(machine, 60.0) as runtime:  # type: ignore[arg-type]
        yield runtime


def test_the_fields_of_the_action_are_sent_and_the_output_is_the_content() -> None:
    machine = AnsweringMachine({"result": {"output": "7 lines", "cause": 3}})
    with open_runtime(machine) as runtime:
        observation = runtime.execute(FrobnicateFile(path="a.py", pattern="x"))
    assert observation == o.FileReadResult(content="7 lines", path="a.py")
    assert machine.requests[1]["method"] == "frobnicate_file"
    assert machine.requests[1]["params"] == {"path": "a.py", "pattern": "x"}


def test_an_action_that_can_change_files_says_which() -> None:
    result = {
        "output": "sorted", "changed": ["a.py"], "changed_count": 1, "differing": 2,
        "repositories": [],
    }  # fmt: skip
    with open_runtime(AnsweringMachine({"result": result})) as runtime:
        observation = runtime.execute(SortLines(path="a.py"))
    changed = o.ChangedPaths(paths=("a.py",), count=1, differing=2)
    assert observation == o.FileWriteResult(content="sorted", path="a.py", changed=changed)


def test_a_failure_has_the_code_of_the_action() -> None:
    error = {"code": wire.ACTION_FAILED, "message": "there is no a.py"}
    with open_runtime(AnsweringMachine({"error": error})) as runtime:
        observation = runtime.execute(SortLines(path="a.py"))
    assert observation == o.ErrorObservation(content="there is no a.py", code="sort")
