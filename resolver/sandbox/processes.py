"""Starts, reaps and kills processes, including those whose parents have exited.

This needs Linux (prctl, /proc); elsewhere less is cleaned up.
"""

import ctypes
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeVar

T = TypeVar("T")

PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
OOM_SCORE_ADJUSTMENT: Final = 500
"""Added to the out-of-memory score (0 to 1000) of children; source: proc(5), oom_score_adj."""

MAX_ROUNDS: Final = 100
"""Maximum number of times that the process list is searched for remaining processes."""

ROOM_SECONDS: Final = 10.0
"""Seconds that killed processes have to make room for new ones."""


def become_subreaper() -> bool:
    """Become the parent of all orphaned descendants; return False if that is not supported.

    A daemon that forks twice and leaves its session escapes process groups and sessions. Its parent
    exits, and it would become a child of process 1. As a subreaper, this process takes the place of
    process 1 for its descendants, so that all of them can be found below it and killed. Source:
    prctl(2), PR_SET_CHILD_SUBREAPER.
    """
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class MemoryKills:
    """Counts the processes that the kernel killed because the sandbox reached its memory limit."""

    def __init__(self) -> None:
        self._count = _oom_kills()

    def more(self) -> bool:
        """Return True if there were any since the last call."""
        before, self._count = self._count, _oom_kills()
        return self._count > before


def _oom_kills() -> int:
    """Return the number of processes killed in this cgroup; 0 if the kernel does not count them.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.events), and
    cgroup-v1/memory.
    """
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path) as file:
                return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
        except OSError:
            continue
    return 0


class Family:
    """The processes that this one has started and the orphans that it has adopted.

    Each process that it starts leads a session.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started_pids: set[int] = set()

    @contextmanager
    def starting(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        stdin: int,
        output: int,
        errors: int | None = None,
        passed: Sequence[int] = (),
        kept: Sequence[int],
        given: Sequence[int],
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """Start a process as leader of a new session; undo that if the body of the `with` fails.

        errors: descriptor for its standard error; None sends it to `output`.
        passed: further descriptors that it inherits under the same numbers.
        kept: descriptors of this process, which are closed if the start or the body fails.
        given: descriptors for the new process, which are closed here in any case.
        Raises OSError, and what the body raises.
        """
        with ExitStack() as on_failure:
            for descriptor in kept:
                on_failure.callback(os.close, descriptor)
            try:
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
                    self._started_pids.add(process.pid)
            finally:
                for descriptor in given:
                    os.close(descriptor)
            on_failure.callback(self.end, process)
            # When memory runs out, the kernel should kill the children and not the server.
            with suppress(OSError), open(f"/proc/{process.pid}/oom_score_adj", "w") as file:
                file.write(str(OOM_SCORE_ADJUSTMENT))
            yield process
            on_failure.pop_all()

    def end(self, process: "subprocess.Popen[bytes]") -> int:
        """Kill the session of a process of this family, reap it, and return its exit code."""
        end_session(process.pid)
        code = process.wait()
        self.forget(process)
        return code

    def forget(self, process: "subprocess.Popen[bytes]") -> None:
        """Forget a process that was waited for: its pid may be reused, by an orphan for example."""
        with self._lock:
            self._started_pids.discard(process.pid)

    def reap_orphans(self) -> None:
        """Reap adopted processes for the rest of the server's life.

        Call it once, in the main thread. The work is done in a thread that SIGCHLD wakes.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, _ignore_signal)
        # A signal handler runs in the main thread, between any two instructions. The wake-up
        # descriptor hands the event over to another thread, which may take locks.
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._reap_forever, args=(reader,), daemon=True).start()

    def with_room(self, make: Callable[[], T]) -> T:
        """Return the result of `make`, which starts processes or threads.

        If the limit of processes or memory is reached, kill every descendant of this process, and
        call `make` again until there is room: processes that were killed count until they are
        reaped. `make` must reap those that it started before it failed: nobody else does. Raises
        OSError or RuntimeError if there is no room after ROOM_SECONDS.
        """
        deadline = time.monotonic() + ROOM_SECONDS
        while time.monotonic() < deadline:
            try:
                return make()
            except (OSError, RuntimeError) as error:  # RuntimeError: a thread can't be started
                if isinstance(error, OSError) and error.errno not in (errno.EAGAIN, errno.ENOMEM):
                    raise
            self._kill_descendants()
            time.sleep(0.01)
        return make()

    @staticmethod
    def _kill_descendants() -> None:
        stopped: set[int] = set()
        # Stopped processes can't fork while the others are being killed; a fork bomb would
        # otherwise start new ones faster than they end.
        while running := set(descendant_pids(os.getpid())) - stopped:
            for pid in running:
                _kill(pid, signal.SIGSTOP)
            stopped |= running
        for pid in stopped:
            _kill(pid, signal.SIGKILL)

    def end_all(self) -> None:
        """Kill every descendant, adopted or not, until none is left.

        New orphans may appear while the list is processed, hence the rounds.
        """
        for _ in range(MAX_ROUNDS):
            alive = [pid for pid in descendant_pids(os.getpid()) if pid != os.getpid()]
            for pid in alive:
                _kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if not alive:
                return
            time.sleep(0.002)

    def _reap_forever(self, wake: int) -> None:
        while True:
            os.read(wake, 4096)
            self._reap_adopted()

    def _reap_adopted(self) -> None:
        """Reap adopted processes that have ended.

        Each is waited for by its own pid: waitid(2) for any child reports the first dead one again
        and again, and that may be one whose owner has yet to wait for it and read its exit code.
        """
        if not _has_dead_child():  # its owner was faster: no need to look through all processes
            return
        server = os.getpid()
        own_session = os.getsid(0)  # also that of a child that `starting` has just forked
        with self._lock:
            for pid, parent, session, state in _processes():
                if parent != server or state != "Z" or session == own_session:
                    continue
                if pid not in self._started_pids:
                    with suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)


def _has_dead_child() -> bool:
    """Return True if a child has ended that nobody has waited for, and leave it so."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # there is no child
        return False


def _ignore_signal(_number: int, _frame: object) -> None:
    """Handle SIGCHLD: without a handler the wake-up descriptor is not written."""


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group, which may be gone already."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def end_session(session: int) -> None:
    """Kill every process of a session, in whatever process group it is."""
    for _ in range(20):
        members = session_members(session)
        if not members:
            return
        for pid in members:
            _kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def session_members(session: int) -> list[int]:
    """Return the pids of the living processes of a session, including its leader."""
    return [pid for pid, _, sid, state in _processes() if sid == session and state != "Z"]


def is_stopped(process_id: int) -> bool:
    """Return True if the process was stopped by a signal."""
    return any(pid == process_id and state == "T" for pid, _, _, state in _processes())


def descendant_pids(ancestor: int) -> list[int]:
    """Return the pids of the living descendants of `ancestor`, the deepest last."""
    children: dict[int, list[int]] = {}
    for pid, parent, _, state in _processes():
        if state != "Z":
            children.setdefault(parent, []).append(pid)
    descendants = [ancestor]
    for pid in descendants:
        descendants.extend(children.get(pid, ()))
    return descendants[1:]


def _processes() -> Iterator[tuple[int, int, int, str]]:
    """Yield (pid, parent, session, state) of every process; source: proc(5), /proc/pid/stat."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The second field is the name in parentheses, which may itself contain spaces and
                # ")".
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        yield int(name), int(fields[1]), int(fields[3]), fields[0].decode()
