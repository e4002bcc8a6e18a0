"""Confines the worker process by resource limits and a seccomp filter.

The process keeps its open files, its memory and the clock. Code that takes it over through a fault
in a parser can open no file and no socket, and start no other process.

See https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import errno
import os
import resource
from typing import Final

from resolver.sandbox.socket_filter import (
    ALLOW,
    ARCHITECTURE,
    ERROR,
    NUMBER,
    install_filter,
    return_action,
    when,
)

_ALLOWED_CALLS: Final = {
    # read, write, close, fstat, lseek, mmap, mprotect, munmap, brk, mremap, madvise, futex,
    # sched_yield, getpid, gettid, getrusage, gettimeofday, clock_gettime, getrandom, sigaltstack,
    # rt_sigaction, rt_sigprocmask, rt_sigreturn, restart_syscall, exit, exit_group
    "x86_64": (0xC000003E, (
        0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 202,
        24, 39, 186, 98, 96, 228, 318, 131,
        13, 14, 15, 219, 60, 231,
    )),
    "aarch64": (0xC00000B7, (
        63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 98,
        124, 172, 178, 165, 169, 113, 278, 132,
        134, 135, 139, 128, 93, 94,
    )),
}  # fmt: skip
"""By machine: the number of its architecture in linux/audit.h and the allowed system calls."""


def limit_resources(memory: int, output: int, seconds: int) -> None:
    """Limit this process to that many bytes of address space and of a file that it writes, and to
    seconds of processor time."""
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: output,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        _, hard_limit = resource.getrlimit(limit)
        effective_limit = value if hard_limit == resource.RLIM_INFINITY else min(value, hard_limit)
        resource.setrlimit(limit, (effective_limit, effective_limit))


def confine_process() -> None:
    """Deny this process every system call that is not in `_ALLOWED_CALLS`, irrevocably.

    Raises OSError if the kernel has no seccomp filters, KeyError if the processor is unknown.
    """
    architecture, calls = _ALLOWED_CALLS[os.uname().machine]
    # The architecture is checked first, because the numbers of system calls depend on it. A denied
    # call fails with EPERM instead of killing the process, so that Python can report it.
    allowed = b"".join(when(NUMBER, call, return_action(ALLOW)) for call in calls)
    deny = return_action(ERROR | errno.EPERM)
    install_filter(when(ARCHITECTURE, architecture, allowed + deny) + deny)
