"""Room for new processes where the limit of processes is reached."""

import subprocess
import sys

ROOM = """
import errno, subprocess
from resolver.sandbox.processes import Family

bomb = subprocess.Popen(["sleep", "4713.25"])
failures = [BlockingIOError(errno.EAGAIN, ""), RuntimeError("can't start new thread")] * 2

def make():
    # Processes that were killed leave no room until they are reaped.
    if failures:
        raise failures.pop()
    return "made"

print(Family().with_room(make), bomb.wait())
failures = [FileNotFoundError()]
try:
    Family().with_room(make)
except FileNotFoundError:
    print("raised")
"""


def test_what_finds_no_room_is_repeated_while_everything_else_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", ROOM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["made", "-9", "raised"]
