"""Tests of the real server process, driven over stdin and stdout by the contract alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolver.sandbox import wire
from resolver.sandbox.actions import Actions
from tests.parts.processes import count_running
from tests.parts.waiting import until
from tests.sandbox.conftest import BASH
from tests.sandbox.connection import Connection

METHODS = (*Actions.CHANGING_METHODS, *Actions.METHODS, "hello", "ping", "interrupt")


def test_hello_returns_root_and_user(server: Connection, root: Path) -> None:
    hello = server.call("hello")
    assert hello["protocol"] == wire.PROTOCOL and hello["root"] == str(root)
    assert hello["pid"] == server.process.pid and hello["user"]
    assert set(hello) == set(wire.Handshake.__annotations__)


@pytest.mark.usefixtures("namespaces")
def test_a_machine_without_pseudo_terminals_is_reported_at_the_start(root: Path) -> None:
    main = Path(wire.__file__).with_name("__main__.py")
    places = ["--root", root, "--scratch", root, "--bash", BASH, "--git", "/usr/bin/git"]
    server = [sys.executable, "-I", main, *places]
    hidden = 'mount --bind /dev/null /dev/ptmx && exec "$@"'
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", hidden, "sh", *server],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done
    assert "no pseudo-terminal, which the shell needs: [Errno " in done.stderr
    assert "/dev/ptmx" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_result_has_the_fields_of_the_contract(server: Connection, root: Path) -> None:
    results = {
        wire.CommandReport: server.shell("echo hi"),
        wire.CellReport: server.call("run_cell", code="1", timeout=30),
        wire.EditReport: server.call("create", path="f", file_text="a\n"),
        wire.ViewResult: server.call("view", path="f"),
    }
    for contract, result in results.items():
        assert set(result) == set(contract.__annotations__)
    for method, params in (
        ("str_replace", {"path": "f", "old_str": "a", "new_str": "b"}),
        ("insert", {"path": "f", "insert_line": 0, "new_str": "top"}),
        ("undo_edit", {"path": "f"}),
    ):
        assert set(server.call(method, **params)) == set(wire.EditReport.__annotations__)
    assert (root / "f").read_text() == "b\n"


def test_a_ping_is_answered_while_a_command_runs(server: Connection, root: Path) -> None:
    waiting = "until [ -e answered ]; do sleep 0.05; done; echo waited"
    running = server.send("run_command", command=waiting, timeout=60)
    ping = server.send("ping")
    assert server.receive() == {"jsonrpc": "2.0", "id": ping, "result": {}}
    (root / "answered").touch()
    answer = server.receive()
    assert answer["id"] == running and answer["result"]["output"] == "waited\n"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("run_command", {"command": "sh -c 'touch {begun}; exec sleep 60'"}),
        ("run_cell", {"code": "import time; open('{begun}', 'w').close(); time.sleep(60)"}),
    ],
)
def test_an_interrupt_reaches_the_running_command(
    server: Connection, method: str, params: dict[str, str], tmp_path: Path
) -> None:
    server.call("run_cell", code="", timeout=30)
    begun = tmp_path / "begun"
    [(name, text)] = params.items()
    running = server.send(method, **{name: text.format(begun=begun)}, timeout=30)
    until(begun.exists)
    interrupt = server.send("interrupt")
    answers = {answer["id"]: answer["result"] for answer in (server.receive(), server.receive())}
    assert answers[interrupt] == {"interrupted": True}
    assert answers[running].get("exit_code") == 130 or answers[running]["error"]
    assert server.call("interrupt") == {"interrupted": False}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("run_command", {"command": "sleep 600"}),
        ("run_cell", {"code": "import time; time.sleep(600)"}),
    ],
)
def test_an_interrupt_reaches_a_command_that_is_just_starting(
    server: Connection, method: str, params: dict[str, str]
) -> None:
    """The first command starts a shell before it runs: the answer to an interrupt that
    comes meanwhile is to try again, and a command that waits in line never starts."""
    first = server.send(method, **params, timeout=900)
    second = server.send("run_command", command="touch begun", timeout=900)
    answers, interrupted = {}, True
    begun = time.monotonic()
    while interrupted and time.monotonic() - begun < 60:
        interrupt = server.send("interrupt")
        while interrupt not in answers:
            answer = server.receive()
            answers[answer["id"]] = answer
        interrupted = answers[interrupt]["result"]["interrupted"]
    assert not interrupted
    assert answers[first]["result"]
    assert answers[second]["error"] == {"code": -32001, "message": "interrupted before it began"}
    assert "begun" not in server.shell("ls")["output"]


@pytest.mark.parametrize(
    "end", [Connection.end_of_input, lambda server: server.send("shutdown")], ids=["end", "word"]
)
def test_the_end_of_the_wire_ends_every_process(
    server: Connection, end: Callable[[Connection], object]
) -> None:
    number = f"97.25{os.getpid()}"
    sleep = f"sleep {number}"
    server.shell(f"{sleep} & (setsid {sleep} &) ; nohup {sleep} >/dev/null 2>&1 &")
    code = f"import subprocess as s; p = s.Popen(['sleep', '{number}'])"
    server.call("run_cell", code=code, timeout=30)
    server.shell(f"(setsid sh -c 'trap : HUP TERM; {sleep}' &)")
    server.send("run_command", command=sleep, timeout=60)
    until(lambda: count_running(sleep) >= 5)
    end(server)
    assert server.process.wait(120) == 0
    assert count_running(sleep) == 0


def test_a_killed_server_takes_its_shell_with_it(server: Connection) -> None:
    sleep = f"sleep 98.25{os.getpid()}"
    server.shell("true")  # it and its shell are up
    server.send("run_command", command=sleep, timeout=60)
    until(lambda: count_running(sleep) == 1)
    server.process.kill()
    server.process.wait()
    until(lambda: count_running(sleep) == 0)


def test_orphans_are_reaped(server: Connection) -> None:
    server.shell("for i in {1..200}; do (sleep 0.01 &); done", 20)

    def states() -> list[str]:
        """The states of the server's children."""
        children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
        found = []
        for pid in " ".join(file.read_text() for file in children).split():
            with suppress(OSError):  # it has ended since
                stat = Path(f"/proc/{pid}/stat").read_text()
                found.append(stat.rpartition(")")[2].split()[0])
        return found

    until(lambda: len(states()) <= 2 and "Z" not in states())


def test_commands_see_neither_the_wire_nor_the_servers_environment(
    copied: Path, root: Path, tmp_path: Path
) -> None:
    os.environ["CANARY_OF_THE_TEST"] = "canary"
    connection = Connection(
        copied / "__main__.py", root, tmp_path / "scratch", BASH, "--variable", "GIVEN=a=b"
    )
    try:
        assert connection.shell("echo $CANARY_OF_THE_TEST:$GIVEN")["output"] == ":a=b\n"
        assert connection.shell("ls /proc/self/fd | tr '\\n' ' '")["output"] == "0 1 2 3 \n"[:-1]
        code = (
            "import os; sorted(os.listdir('/proc/self/fd'))[:3], 'CANARY_OF_THE_TEST' in os.environ"
        )
        assert "False" in connection.call("run_cell", code=code, timeout=30)["output"]
    finally:
        del os.environ["CANARY_OF_THE_TEST"]
        connection.kill()


WRONG_LINES = [
    (b"garbage", wire.PARSE_ERROR, None),
    (b"\xff\xfe\x00", wire.PARSE_ERROR, None),
    (b"[" * 50_000, wire.PARSE_ERROR, None),
    (b"[]", wire.INVALID_REQUEST, None),
    (b"{}", wire.INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":7,"method":1}', wire.INVALID_REQUEST, 7),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', wire.INVALID_REQUEST, None),
    (b'{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}', wire.INVALID_PARAMS, "x"),
    (b'{"jsonrpc":"2.0","id":8,"method":"nosuch"}', wire.METHOD_NOT_FOUND, 8),
    (b'{"jsonrpc":"2.0","id":9,"method":"__init__"}', wire.METHOD_NOT_FOUND, 9),
    (b'{"jsonrpc":"2.0","id":10,"method":"run_command"}', wire.INVALID_PARAMS, 10),
    (b'{"jsonrpc":"2.0","id":11,"method":"view","params":{"path":"none"}}',
     wire.ACTION_FAILED, 11),
    (b'{"jsonrpc":"2.0","id":12,"method":"run_command","params":{"command":"x","timeout":NaN}}',
     wire.INVALID_PARAMS, 12),
]  # fmt: skip


def test_a_wrong_line_is_answered_with_its_error(server: Connection) -> None:
    for line, code, id in WRONG_LINES:
        server.raw(b"\n  \n" + line + b"\n")
        answer = server.receive()
        assert (answer["error"]["code"], answer["id"]) == (code, id), line
        assert server.call("ping") == {}


def test_any_lines_leave_the_server_alive(server: Connection) -> None:
    @settings(suppress_health_check=list(HealthCheck))
    @given(
        st.binary(max_size=60)
        | st.fixed_dictionaries(
            {"jsonrpc": st.just("2.0")},
            optional={
                "id": st.integers(max_value=-1) | st.text(max_size=3) | st.none(),
                "method": st.sampled_from(METHODS) | st.text(),
                "params": st.dictionaries(
                    st.sampled_from(["path", "view_range", "old_str", "timeout", "commit"]),
                    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers()),
                ),
            },
        ).map(lambda message: json.dumps(message).encode())
    )
    def throw(line: bytes) -> None:
        server.raw(line.replace(b"\n", b"") + b"\n")
        ping = server.send("ping")
        while server.receive().get("id") != ping:
            pass

    throw()
    alive = server.send("run_command", command="echo alive", timeout=10)
    while (answer := server.receive()).get("id") != alive:
        pass
    assert answer["result"]["output"] == "alive\n"


def test_a_notification_gets_no_answer(server: Connection) -> None:
    server.raw(b'{"jsonrpc":"2.0","method":"ping"}\n')
    server.raw(
        b'{"jsonrpc":"2.0","method":"run_command","params":{"command":"true","timeout":5}}\n'
    )
    assert server.call("ping") == {}
    assert server.shell("echo next")["output"] == "next\n"


def test_a_frame_over_the_limit_ends_the_connection(server: Connection) -> None:
    with suppress(BrokenPipeError):
        server.raw(b"x" * (wire.MAX_FRAME + (1 << 20)))
    assert server.receive()["error"]["code"] == wire.PARSE_ERROR
    assert server.process.wait(120) == 0


def test_a_large_frame_within_the_limit_is_served(server: Connection, root: Path) -> None:
    text = "0123456789\n" * 200_000
    server.call("create", path="large", file_text=text)
    assert (root / "large").stat().st_size == len(text)


def test_too_many_requests_at_once_are_refused(server: Connection, root: Path) -> None:
    server.send("run_command", command="until [ -e refused ]; do sleep 0.05; done", timeout=60)
    for _ in range(80):
        server.send("view", path=".")
    refused = [server.receive() for _ in range(17)]
    assert all("waiting" in answer["error"]["message"] for answer in refused)
    (root / "refused").touch()
    assert not any("error" in server.receive() for _ in range(64))


def test_names_that_are_not_utf8_are_shown_with_replacements(
    server: Connection, root: Path
) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_text("x")
    assert "caf\ufffd" in server.call("view", path=".")["output"]
    assert server.shell("cd $'d\\xff' 2>/dev/null || mkdir $'d\\xff'; cd $'d\\xff'")[
        "cwd"
    ].endswith("d\ufffd")


def test_surrogates_from_the_host_are_harmless(server: Connection) -> None:
    server.raw(
        b'{"jsonrpc":"2.0","id":1,"method":"run_command",'
        b'"params":{"command":"echo \\ud800\\udc80 x\\udfff","timeout":5}}\n'
    )
    assert "result" in server.receive()
