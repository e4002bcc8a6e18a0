"""Processes that nobody waits for: adopt them, reap them, and end all of them at the end.

Only Linux has what this needs (prctl, /proc); where it is missing, less is cleaned up.
"""

import ctypes
import errno
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")

PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
EXPENDABLE: Final = 500
"""What is added to a child's badness, of 1000; source: proc(5), oom_score_adj."""

MOST_ROUNDS: Final = 100
"""How often is looked for processes that are still there."""

BLOCKED_PAUSE: Final = 0.05
"""Seconds to wait when the first dead child is one that its owner is about to reap."""


def become_subreaper() -> bool:
    """Have orphans below us become our children, so that they can be found and ended."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class MemoryKills:
    """Processes that the kernel killed because the sandbox was at its memory limit."""

    def __init__(self) -> None:
        self._seen = _oom_kills()

    def more(self) -> bool:
        """Whether there were any since the last time."""
        before, self._seen = self._seen, _oom_kills()
        return self._seen > before


def _oom_kills() -> int:
    """Zero where the kernel does not count them for us. Source: its cgroup-v2 and memory pages."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path) as file:
                return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
        except OSError:
            continue
    return 0


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
        errors: int | None = None,
        passed: Sequence[int] = (),
    ) -> "subprocess.Popen[bytes]":
        """Start a leader of a new session. errors: its standard error, where that is not to go
        into its output. Raises OSError."""
        with self._lock:
            process = subprocess.Popen(
                arguments,
                stdin=stdin,
                stdout=output,
                stderr=output if errors is None else errors,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
                pass_fds=passed,
            )
            self._own.add(process.pid)
        # The server is to outlive what it has started when memory runs out.
        with suppress(OSError), open(f"/proc/{process.pid}/oom_score_adj", "w") as file:
            file.write(str(EXPENDABLE))
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

    def with_room(self, make: Callable[[], T]) -> T:
        """What `make` makes. Where there is no room for its processes and threads, every process
        below this one is ended first. Raises OSError or RuntimeError where that does not help."""
        try:
            return make()
        except (OSError, RuntimeError) as error:  # a thread that can't be started is the latter
            if isinstance(error, OSError) and error.errno not in (errno.EAGAIN, errno.ENOMEM):
                raise
        for _ in range(MOST_ROUNDS):
            stopped: set[int] = set()
            # What stands still can't multiply while it is killed.
            while more := set(descendant_pids(os.getpid())) - stopped:
                for pid in more:
                    _kill(pid, signal.SIGSTOP)
                stopped |= more
            for pid in stopped:
                _kill(pid, signal.SIGKILL)
            if not stopped:
                break
            time.sleep(0.01)
        return make()

    def end_all(self) -> None:
        """The end: kill every process below this one, adopted or not, until there is none."""
        for _ in range(MOST_ROUNDS):
            alive = [pid for pid in descendant_pids(os.getpid()) if pid != os.getpid()]
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


def is_stopped(wanted: int) -> bool:
    """Whether a process was stopped by a signal."""
    return any(pid == wanted and state == "T" for pid, _, _, state in _processes())


def descendant_pids(ancestor: int) -> list[int]:
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
