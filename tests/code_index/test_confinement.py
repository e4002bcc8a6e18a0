"""Tests of what a confined process can still do."""

import subprocess
import sys

import pytest

TRY = """
import os, socket, sys
from resolver.code_index.confinement import confine_process, limit_resources
limit_resources(500_000_000, 1_000_000, 60)
confine_process()
try:
    {attempt}
except (OSError, MemoryError) as error:
    print(type(error).__name__)
else:
    print("done")
sys.stdout.flush()
"""


@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd')",
        "open('/proc/self/environ')",
        "os.listdir('/')",
        "socket.socket()",
        "socket.socketpair()",
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "os.kill(1, 0)",
        "os.pipe()",
        "os.memfd_create('x')",
        "os.setuid(0)",
        "os.unlink('/tmp/x')",
    ],
)
def test_the_confined_process_opens_and_starts_nothing(attempt: str) -> None:
    assert tried(attempt) == "PermissionError"


def test_the_confined_process_respects_its_memory_limit() -> None:
    assert tried("bytearray(600_000_000)") == "MemoryError"


def test_the_confined_process_can_still_compute() -> None:
    assert tried("sum(len(str(n)) for n in range(100_000)); [0] * 10_000_000") == "done"


def tried(attempt: str) -> str:
    command = [sys.executable, "-c", TRY.format(attempt=attempt)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()
