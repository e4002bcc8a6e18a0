"""Tests of programs in a running sandbox whose input and output the host controls."""

import threading

import pytest

from resolver.errors import SandboxError
from resolver.runtime.runtime import Runtime
from resolver.sandbox.wire import PROGRAM_CHUNK
from tests.parts.sandboxes import DOCKER_BUSYBOX, LOCAL, kinds
from tests.parts.waiting import is_inside, until

pytestmark = pytest.mark.parametrize("sandbox_kind", kinds(LOCAL, DOCKER_BUSYBOX))


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
