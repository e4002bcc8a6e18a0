"""Processes that nobody waits for: adopt them, reap them, and end all of them at the end.

Only Linux has what this needs (prctl, /proc); where it is missing, less is cleaned up.
"""

import ctypes
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
BLOCKED_PAUSE: Final = 0.05
"""Seconds to wait when the first dead child is one that its owner is about to reap."""


def become_subreaper() -> bool:
    """Have orphans below us become our children, so that they can be found and ended."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class Family:
    """Children of ours (sessions of their own) and the orphans that we adopt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: set[int] = set()

    def spawn(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        stdin: int,
        output: int,
        passed: Sequence[int] = (),
    ) -> "subprocess.Popen[bytes]":
        """Start a leader of a new session. Raises OSError."""
        with self._lock:
            process = subprocess.Popen(
                arguments,
                stdin=stdin,
                stdout=output,
                stderr=output,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
                pass_fds=passed,
            )
            self._own.add(process.pid)
        return process

    def forget(self, process: "subprocess.Popen[bytes]") -> None:
        """The process was waited for; its number may come back as an orphan's."""
        with self._lock:
            self._own.discard(process.pid)

    def reap_orphans(self) -> None:
        """For the whole life of the server: reap whom nobody else waits for.

        To be called once, in the main thread; the work is done in a thread that SIGCHLD wakes.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, _noted)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._reap_for_ever, args=(reader,), daemon=True).start()

    def end_all(self) -> None:
        """The end: kill every process below this one, adopted or not, until there is none."""
        for _ in range(100):
            alive = [pid for pid in descendants(os.getpid()) if pid != os.getpid()]
            for pid in alive:
                _kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if not alive:
                return
            time.sleep(0.002)

    def _reap_for_ever(self, wake: int) -> None:
        blocked = False
        while True:
            if select.select([wake], [], [], BLOCKED_PAUSE if blocked else None)[0]:
                os.read(wake, 4096)
            blocked = self._reap_ready()

    def _reap_ready(self) -> bool:
        """True when a child that is not ours to reap stands before the others."""
        while True:
            with self._lock:
                try:
                    found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                    if found is None:
                        return False
                    if found.si_pid in self._own or os.getsid(found.si_pid) == os.getsid(0):
                        return True
                    os.waitpid(found.si_pid, os.WNOHANG)
                except (ChildProcessError, ProcessLookupError):
                    return False


def _noted(_number: int, _frame: object) -> None:
    """SIGCHLD needs a receiver, or the wake-up descriptor is not written."""


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_group(group: int, number: int) -> None:
    """Signal a process group that may be gone already."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def end_session(session: int) -> None:
    """Kill every process of a session, whatever group it is in."""
    for _ in range(20):
        members = session_members(session)
        if not members:
            return
        for pid in members:
            _kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def session_members(session: int) -> list[int]:
    """Living processes of a session, its leader among them."""
    return [pid for pid, _, sid, state in _processes() if sid == session and state != "Z"]


def descendants(ancestor: int) -> list[int]:
    """Living processes below `ancestor`, deepest last."""
    children: dict[int, list[int]] = {}
    for pid, parent, _, state in _processes():
        if state != "Z":
            children.setdefault(parent, []).append(pid)
    found = [ancestor]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found[1:]


def _processes() -> Iterator[tuple[int, int, int, str]]:
    """(pid, parent, session, state) of all; source: proc(5), /proc/pid/stat."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        yield int(name), int(fields[1]), int(fields[3]), fields[0].decode()
