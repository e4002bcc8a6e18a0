"""Finds and kills a process with all its descendants, read from /proc (proc(5))."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

_KILL_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.02


def process_descendants(pid: int) -> list[int]:
    """Return the processes below `pid`, parents before their children. Zombies are left out."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The second field is the program's name in parentheses, which may itself hold spaces
            # and parentheses: proc_pid_stat(5).
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = list(children.get(pid, []))
    for child in found:
        found += children.get(child, [])
    return found


def kill_tree(process: "subprocess.Popen[bytes]") -> None:
    """Kill everything below the process, then the process itself, and wait for it.

    The process is a subreaper for orphans (see enter.py), so none can escape while it lives.
    Killing is repeated for at most five seconds, as processes may start new ones meanwhile.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    while (found := process_descendants(process.pid)) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
