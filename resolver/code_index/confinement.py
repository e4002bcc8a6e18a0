"""Confines the worker process by resource limits and a seccomp filter.

The process keeps its open files, its memory and the clock. Code that takes it over through a fault
in a parser can open no file and no socket, and start no other process.
"""

import ctypes
import errno
import os
import resource
import struct
import sys
from typing import Final

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

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38


def limit_resources(memory: int, seconds: int) -> None:
    """Limit this process to that many bytes of address space and seconds of processor time."""
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
    }
    for limit, value in limits.items():
        _, hard_limit = resource.getrlimit(limit)
        effective_limit = value if hard_limit == resource.RLIM_INFINITY else min(value, hard_limit)
        resource.setrlimit(limit, (effective_limit, effective_limit))


def confine_process() -> bool:
    """Deny this process every system call that is not in `_ALLOWED_CALLS`, irrevocably.

    Returns False if the kernel has no seccomp filters or the processor is unknown: then only the
    limits of `limit_resources` apply. See https://docs.kernel.org/userspace-api/seccomp_filter.html
    """
    machine = os.uname().machine
    if sys.byteorder != "little" or machine not in _ALLOWED_CALLS:
        return False
    program = _program(*_ALLOWED_CALLS[machine])
    buffer = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    # Required to install a filter without CAP_SYS_ADMIN, see seccomp(2).
    libc.prctl(_PR_SET_NO_NEW_PRIVS, *arguments)
    mode = ctypes.c_ulong(_SECCOMP_MODE_FILTER)
    return bool(libc.prctl(_PR_SET_SECCOMP, mode, header) == 0)


def _program(architecture: int, allowed_calls: tuple[int, ...]) -> bytes:
    """Return the filter as instructions of classic BPF (linux/filter.h)."""
    # The architecture is checked first, because the numbers of system calls depend on it. A denied
    # call fails with EPERM instead of killing the process, so that Python can report it.
    deny = _instruction(_RETURN, _ERROR | errno.EPERM)
    allow = _instruction(_RETURN, _ALLOW)
    program = _instruction(_LOAD, _ARCHITECTURE) + _instruction(_EQUAL, architecture, 1, 0) + deny
    program += _instruction(_LOAD, _NUMBER)
    for call in allowed_calls:
        program += _instruction(_EQUAL, call, 0, 1) + allow
    return program + deny


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
