"""A process and all that came of it, read from /proc."""

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
    """Processes below `pid`, parents before their children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The second field is the name in parentheses, which may hold anything.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = list(children.get(pid, []))
    for child in found:
        found += children.get(child, [])
    return found


def kill_tree(process: "subprocess.Popen[bytes]") -> None:
    """Kill everything below the process, then the process, and wait for it.

    The process adopts orphans (see enter.py), so none is out of reach while it lives.
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
