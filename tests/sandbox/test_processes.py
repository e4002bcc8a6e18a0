"""Room for new processes where the limit of processes is reached."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.conftest import SANDBOX

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


UNFINISHED = """
import os, sys, threading
from resolver.sandbox.bash import Bash
from resolver.sandbox.environment import Outputs
from resolver.sandbox.ipython import IPython, KernelCommand
from resolver.sandbox.processes import Family

kind, failing, folder, main = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
number, start = 0, threading.Thread.start

def start_or_fail(thread):
    global number
    number += 1
    if number == failing:
        raise RuntimeError("can't start new thread")
    start(thread)

def descriptors():
    return len(os.listdir("/proc/self/fd"))

before, outputs = descriptors(), Outputs(folder)
threading.Thread.start = start_or_fail
if kind == "bash":
    session = Bash(Family(), "/bin/bash", {"PATH": "/usr/bin:/bin"}, "/", outputs)
    output = session.run("echo back", 60, False)["output"]
else:
    kernel = (sys.executable, "-I", main, "--kernel", folder)
    session = IPython(Family(), KernelCommand(kernel, dict(os.environ), "/"), outputs)
    output = session.run("print('back')", 60)["output"]
dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
session.close()
print(output.strip(), dead, descriptors() - before, number > failing)
"""


@pytest.mark.parametrize("failing", [1, 2])
@pytest.mark.parametrize("kind", ["bash", "ipython"])
def test_a_start_that_finds_no_room_for_a_thread_leaves_nothing(
    programs: None, tmp_path: Path, kind: str, failing: int
) -> None:
    """The process whose thread can't be started is reaped, and its pipes are closed."""
    left = start_without_thread(kind, failing, tmp_path, str(SANDBOX / "__main__.py"))
    assert left == ["back", "None", "0", "True"]


def start_without_thread(kind: str, failing: int, folder: Path, program: str) -> list[str]:
    """Let the start of one of a session's threads fail, and return what the session leaves.

    It is the output of a request, an unreaped process, the number of descriptors that are not
    closed, and whether a thread was started after the one that failed.
    """
    arguments = [kind, str(failing), str(folder), program]
    done = subprocess.run(
        [sys.executable, "-c", UNFINISHED, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


HIDDEN = """
import subprocess, time
from resolver.sandbox.processes import Family, become_subreaper, descendant_pids

def has_zombie(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"

become_subreaper()
family = Family()
with family.starting(
    ["true"], environment={}, folder="/", stdin=0, output=1, kept=(), given=()
) as first:
    while not has_zombie(first.pid):
        time.sleep(0.01)
family.reap_orphans()
orphan = "setsid sh -c 'echo $$; sleep 0.1' &"
with subprocess.Popen(
    orphan, shell=True, stdout=subprocess.PIPE, start_new_session=True, text=True
) as parent:
    pid = int(parent.stdout.readline())
deadline = time.monotonic() + 20
reaped = False
while not reaped and time.monotonic() < deadline:
    time.sleep(0.01)
    try:
        has_zombie(pid)
    except OSError:
        reaped = True
print(reaped, family.end(first))
"""


def test_a_dead_process_that_nobody_waits_for_hides_no_orphan() -> None:
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "0"], done.stderr
