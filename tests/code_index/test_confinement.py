"""Tests of what a confined process can still do."""

import subprocess
import sys

TRY = """
import os, socket, sys
from resolver.code_index.confinement import confine_process, limit_resources
limit_resources(500_000_000, 1_000_000, 60)
confine_process()
for attempt in sys.argv[1:]:
    try:
        exec(attempt)
    except (OSError, MemoryError) as error:
        print(type(error).__name__)
    else:
        print("done")
    sys.stdout.flush()
"""
REFUSED = (
    "open('/etc/passwd')", "open('/proc/self/environ')", "os.listdir('/')", "socket.socket()",
    "socket.socketpair()", "os.fork()", "os.execv('/bin/true', ['true'])", "os.kill(1, 0)",
    "os.pipe()", "os.memfd_create('x')", "os.setuid(0)", "os.unlink('/tmp/x')",
)  # fmt: skip


def tried(*attempts: str) -> list[str]:
    """What becomes of each attempt, all in one confined process."""
    done = subprocess.run(
        [sys.executable, "-c", TRY, *attempts], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_confined_process_opens_and_starts_nothing_and_can_still_compute() -> None:
    found = tried("sum(len(str(n)) for n in range(100_000)); [0] * 10_000_000", *REFUSED)
    assert found[0] == "done"
    assert dict(zip(REFUSED, found[1:], strict=True)) == dict.fromkeys(REFUSED, "PermissionError")


def test_the_confined_process_respects_its_memory_limit() -> None:
    assert tried("bytearray(600_000_000)") == ["MemoryError"]
