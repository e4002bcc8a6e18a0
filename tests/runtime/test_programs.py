"""Tests of programs in a running sandbox whose input and output the host controls."""

import threading
import time

import pytest

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.runtime.runtime import Runtime
from resolver.sandbox.wire import PROGRAM_CHUNK
from tests.parts.sandboxes import DOCKER_BUSYBOX, LOCAL, kinds
from tests.parts.waiting import is_inside, until

pytestmark = pytest.mark.parametrize("sandbox_kind", kinds(LOCAL, DOCKER_BUSYBOX))

ECHO = ("sh", ["-c", 'while read -r line; do echo "$line"; done; echo over >&2'])


@pytest.mark.deep
def test_a_program_can_be_used_while_a_command_runs(sandbox: Runtime) -> None:
    program = sandbox.start_program(*ECHO)
    answers: list[object] = []
    command = threading.Thread(
        target=lambda: answers.append(sandbox.execute(CmdRun(command="sleep 1; echo slept")))
    )
    command.start()
    program.write(b"hello\n")
    started = time.monotonic()
    assert program.read() == b"hello\n"
    assert time.monotonic() - started < 1 or not answers
    command.join()
    assert isinstance(answers[0], CmdOutput) and "slept" in answers[0].content
    program.close()
    assert program.read() == b""


def test_large_data_passes_unchanged(sandbox: Runtime) -> None:
    program = sandbox.start_program("cat", [])
    data = bytes(range(256)) * (3 * PROGRAM_CHUNK // 256) + b"end"
    writer = threading.Thread(target=lambda: program.write(data))
    writer.start()
    found = b""
    while len(found) < len(data):
        found += program.read()
    writer.join()
    assert found == data


def test_a_program_that_can_not_be_started_is_named(sandbox: Runtime) -> None:
    with pytest.raises(SandboxError, match="no-such-program can't be started"):
        sandbox.start_program("no-such-program", [])


def test_closing_the_sandbox_ends_its_programs(sandbox: Runtime) -> None:
    program = sandbox.start_program("sleep", ["1000"])
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(program.read()))
    reader.start()
    until(lambda: is_inside(reader, "wait"))
    sandbox.close()
    reader.join(60)
    assert found == [b""]
    with pytest.raises(SandboxError):
        program.write(b"x")
    program.close()
