"""Tests of the notifications that show the output of a command while it runs."""

import json
import os
import select
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.sandbox import wire
from resolver.sandbox.bash import Bash
from resolver.sandbox.ipython import IPython
from resolver.sandbox.processes import Family
from resolver.sandbox.server import Server
from resolver.sandbox.spool import TAIL_BYTES, Spool
from tests.parts.waiting import until


def spool_of(data: bytes, folder: Path) -> Spool:
    spool = Spool(str(folder / "output"))
    spool.add(data)
    return spool


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ""),
        (b"the beginning of a sec", ""),
        (b"one\ntwo\nthe beginning of a sec", "one\ntwo"),
        (b"one\r\n\n \ntwo\r\n", "one\ntwo"),
        (b"10 %\r20 %\r30", "10 %\n20 %"),
        (b"\xff\0\n", "\ufffd\ufffd"),
        (b"the secret is cut h" + b"x" * TAIL_BYTES + b"ere\nlast\n", "last"),
        (b"x" * TAIL_BYTES, ""),
    ],
)
def test_only_complete_lines_are_reported(data: bytes, expected: str, tmp_path: Path) -> None:
    assert spool_of(data, tmp_path).last_lines() == expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=30))
def test_a_notification_has_whole_lines_and_a_limited_size(lines: list[str]) -> None:
    text = "\n".join(lines)
    frame = wire.output_frame(7, text)
    assert len(frame) <= wire.MAX_OUTPUT_FRAME
    if frame:
        notice = wire.output_notice(frame, wire.decode(frame)["params"])
        assert notice.request == 7 and f"\n{text}".endswith(f"\n{notice.text}")
        assert len(notice.text.encode()) <= wire.MAX_OUTPUT_TEXT


class RunningAction:
    """The actions of a server, of which one runs until `end` is set."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.lines = "line 1\nline 2"

    def run(self, method: str, params: object) -> dict[str, Any]:
        self.end.wait()
        return {"output": "all of it"}

    def last_lines(self, method: str) -> str:
        return self.lines


class Wire:
    """A server in this process whose notifications are due immediately."""

    def __init__(self, actions: RunningAction) -> None:
        requests, self.requests = os.pipe()
        self.answers, writer = os.pipe()
        self.descriptors = (requests, self.requests, self.answers, writer)
        self.writer = writer
        self.waits = threading.Semaphore(0)
        """Counts how often the server has waited for the end of the action."""
        self.server = Server(actions, Family(), requests, writer, None, self._wait)  # type: ignore[arg-type]

    def _wait(self, ended: threading.Event, _: float) -> bool:
        self.waits.release()
        return ended.wait(0.001)

    def send(self, **message: Any) -> None:
        os.write(self.requests, wire.encode({"jsonrpc": "2.0", **message}))

    def receive(self) -> dict[str, Any]:
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self.answers, 1)
        return wire.decode(line)


@contextmanager
def serving(actions: RunningAction) -> Iterator[Wire]:
    connection = Wire(actions)
    thread = threading.Thread(target=connection.server.serve)
    thread.start()
    try:
        yield connection
    finally:
        actions.end.set()
        os.close(connection.requests)
        thread.join()
        for descriptor in set(connection.descriptors) - {connection.requests}:
            os.close(descriptor)


RUN = {"id": 5, "method": "run_command", "params": {"report_output": True}}


def test_notifications_come_while_a_command_runs_and_end_with_its_answer() -> None:
    actions = RunningAction()
    with serving(actions) as server:
        server.send(**RUN)
        first = server.receive()
        actions.lines = "line 3"
        second = server.receive()
        actions.end.set()
        answer = server.receive()
        server.send(id=6, method="ping")
        assert server.receive()["id"] == 6
    assert first == {
        "jsonrpc": "2.0",
        "method": "output",
        "params": {"request": 5, "text": "line 1\nline 2"},
    }
    assert second["params"]["text"] == "line 3"
    assert answer["id"] == 5 and answer["result"] == {"output": "all of it"}


@pytest.mark.parametrize(
    "message",
    [
        {"id": 5, "method": "run_command"},
        {"id": 5, "method": "run_command", "params": {"report_output": False}},
        {"id": 5, "method": "view", "params": {"report_output": True}},
        {"id": "5", "method": "run_command", "params": {"report_output": True}},
    ],
)
def test_without_being_asked_for_there_are_no_notifications(message: dict[str, Any]) -> None:
    actions = RunningAction()
    with serving(actions) as server:
        server.send(**message)
        actions.end.set()
        assert "result" in server.receive()
        assert not server.waits.acquire(blocking=False)


def test_a_host_that_does_not_read_delays_no_command() -> None:
    actions = RunningAction()
    with serving(actions) as server:
        filler = b" " * 4_095 + b"\n"
        count = 0
        while select.select([], [server.writer], [], 0)[1]:
            os.write(server.writer, filler)
            count += 1
        server.send(**RUN)
        for _ in range(5):  # its output was due several times, and nothing could be written
            server.waits.acquire()
        actions.end.set()
        left = count * len(filler)
        while left:
            left -= len(os.read(server.answers, left))
        # As soon as there is space, the output may be reported once more before the command ends.
        while "id" not in (answer := server.receive()):
            assert answer["method"] == "output"
        assert answer["id"] == 5


@pytest.mark.parametrize("kind", ["bash", "ipython"])
def test_the_output_of_a_running_action_can_be_read(
    kind: str, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    session: Bash | IPython = request.getfixturevalue(kind)
    assert session.last_lines() == ""
    go = tmp_path / "go"
    os.mkfifo(go)
    command = (
        f"echo one; printf two; read x < {go}; echo"
        if kind == "bash"
        else f"print('one'); print('two', end='', flush=True); open({str(go)!r}).readline()"
    )
    run: Callable[[], Any] = (
        (lambda: session.run(command, 30, False))
        if isinstance(session, Bash)
        else (lambda: session.run(command, 30))
    )
    # Opening a named pipe for reading and writing does not wait for the action to open it.
    with ThreadPoolExecutor() as pool, open(os.open(go, os.O_RDWR), "wb", buffering=0) as file:
        result = pool.submit(run)
        until(lambda: result.done() or session.last_lines() == "one", pause=0.001)
        file.write(b"\n")
        assert json.dumps(result.result()["output"]).startswith('"one\\ntwo')
    assert session.last_lines() == ""
