"""Tests of programs in the sandbox whose input and output the host controls."""

import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.sandbox import programs, wire
from resolver.sandbox.environment import shell_environment
from resolver.sandbox.processes import Family, session_members
from resolver.sandbox.programs import Programs
from resolver.sandbox.wire import ActionFailed
from tests.parts.waiting import is_inside, until
from tests.sandbox.conftest import BASH, OWN
from tests.sandbox.connection import Connection


@pytest.fixture
def live(root: Path) -> Iterator[Programs]:
    environment = shell_environment(OWN, False, None, {"EXTRA": "given"}, BASH)
    made = Programs(Family(), environment, str(root))
    yield made
    made.close()


def shell(live: Programs, script: str) -> int:
    return live.start(BASH, ["-c", script])


def give(live: Programs, number: int, data: bytes) -> None:
    live.write(number, base64.b64encode(data).decode())


def read_all(live: Programs, number: int) -> tuple[bytes, str]:
    whole = b""
    while True:
        data, ended, words = live.read(number, 5)
        whole += data
        if ended:
            return whole, words


def test_input_reaches_a_program_and_its_output_returns(live: Programs) -> None:
    number = shell(live, "cat")
    give(live, number, b"one\n\xff")
    assert live.read(number, 5) == (b"one\n\xff", False, "")


def test_a_program_starts_in_the_root_with_the_shells_environment(
    live: Programs, root: Path
) -> None:
    data, _ = read_all(live, shell(live, 'echo "$PWD $EXTRA ${SECRET:-none}"'))
    assert data.decode().split() == [str(root), "given", "none"]


def test_only_the_end_of_standard_error_is_kept(live: Programs) -> None:
    number = shell(live, "head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; echo out")
    whole, words = read_all(live, number)
    assert whole == b"out\n"
    assert words.endswith("the end") and len(words) <= programs.KEPT_STDERR_BYTES


def test_a_program_that_is_not_polled_blocks_on_a_full_pipe(live: Programs, root: Path) -> None:
    full = "yes | head -c 60000; touch full"  # nearly; what follows does not fit
    number = shell(live, f"{full}; yes | head -c 2940000; echo; echo done >&2")
    until((root / "full").exists)
    whole, words = read_all(live, number)
    assert len(whole) == 3_000_001 and words == "done"


def test_unread_input_is_abandoned(live: Programs, root: Path) -> None:
    number = shell(live, "exec 0<&-; touch closed; sleep 30")
    until((root / "closed").exists)
    with pytest.raises(ActionFailed, match="accepts no input"):
        give(live, number, b"x" * 1_000_000)


def test_ending_a_program_ends_its_children(live: Programs) -> None:
    number = shell(live, "sleep 1000 & sleep 1000 & echo $$; wait")
    leader = int(live.read(number, 5)[0])
    assert len(session_members(leader)) == 3
    live.end(number)
    assert session_members(leader) == []


def test_ending_a_program_wakes_its_reader(live: Programs) -> None:
    number = shell(live, "sleep 1000")
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(live.read(number, 60)))
    reader.start()
    until(lambda: is_inside(reader, "read"))
    live.end(number)
    reader.join(60)
    assert found == [(b"", True, "")]


def test_the_number_of_programs_is_limited(live: Programs) -> None:
    for _ in range(wire.MAX_PROGRAMS):
        shell(live, "cat")
    with pytest.raises(ActionFailed, match="run already"):
        shell(live, "cat")


def test_programs_are_served_while_a_command_runs(server: Connection, root: Path) -> None:
    started = server.call("start_program", command=BASH, arguments=["-c", "cat"])
    waiting = "until [ -e served ]; do sleep 0.05; done"
    command = server.send("run_command", command=waiting, timeout=60, is_input=False)
    server.call("write_program", program=started["program"], data=base64.b64encode(b"hi").decode())
    answer = server.call("read_program", program=started["program"], timeout=1)
    assert base64.b64decode(answer["data"]) == b"hi" and answer["ended"] is False
    (root / "served").touch()
    assert server.receive()["id"] == command


def test_wrong_parameters_are_refused(server: Connection) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("start_program", {"command": 1, "arguments": []}),
        ("start_program", {"command": "x", "arguments": "y"}),
        ("start_program", {"command": "a\0b", "arguments": []}),
        ("read_program", {"program": "1", "timeout": 1}),
        ("write_program", {"program": 1, "data": "?"}),
    ]
    for method, params in wrong:
        code = server.refusal(method, **params)["code"]
        assert code in {wire.INVALID_PARAMS, wire.ACTION_FAILED}, params
    assert server.call("ping") == {}
