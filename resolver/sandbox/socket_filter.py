"""A filter in the kernel that no program can take off: which kinds of sockets there are.

Virtual machines talk to their host through sockets (AF_VSOCK) that no network namespace holds back.
Run as a script with the standard library alone, it starts a program behind the filter; without one
it is a container's first process, behind the filter too, and waits for SIGTERM:
    socket_filter.py [PROGRAM [ARGUMENT...]]
"""

import ctypes
import errno
import os
import signal
import struct
import sys
from contextlib import suppress
from typing import Final

ALLOWED: Final = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""

# linux/audit.h: (kind of processor, system call `socket`, system call `socketcall` where it exists)
_PROCESSORS: Final = (
    (0xC000003E, 41, None),  # x86_64
    (0x40000003, 359, 102),  # i386
    (0xC00000B7, 198, None),  # aarch64
    (0x40000028, 281, 102),  # arm
)
_X32_BIT: Final = 0x40000000
_IO_URING_SETUP: Final = 425
"""The same on every processor. Through its rings sockets are made that no filter sees."""

_LOAD, _EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_NUMBER, _PROCESSOR, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little-endian
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38


def refuse_sockets() -> None:
    """For this thread and all that it starts: sockets of ALLOWED families only, no io_uring.

    Raises OSError where the kernel has no such filters or the processor is unknown.
    """
    if sys.byteorder != "little" or os.uname().machine not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, f"no filter for a {os.uname().machine}")
    steps = _program()
    code = ctypes.create_string_buffer(steps)
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(steps) // 8, ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    no_more = (ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, *no_more)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel takes no filter: {os.strerror(number)}")


def _program() -> bytes:
    """The filter, as instructions of classic BPF (linux/filter.h)."""
    steps = b""
    for processor, socket_call, multiplexer in _PROCESSORS:
        steps += _when(_PROCESSOR, processor, _rules(socket_call, multiplexer))
    return steps + _end(_ERROR | errno.ENOSYS)


def _rules(socket_call: int, multiplexer: int | None) -> bytes:
    families = b"".join(_when(_FIRST_ARGUMENT, family, _end(_ALLOW)) for family in ALLOWED)
    rules = _when(_NUMBER, _IO_URING_SETUP, _end(_ERROR | errno.ENOSYS), mask=~_X32_BIT)
    rules += _when(
        _NUMBER, socket_call, families + _end(_ERROR | errno.EAFNOSUPPORT), mask=~_X32_BIT
    )
    if multiplexer is not None:
        # Its arguments are out of sight; programs of the last ten years do without it.
        make = _when(_FIRST_ARGUMENT, 1, _end(_ERROR | errno.ENOSYS))
        rules += _when(_NUMBER, multiplexer, make + _end(_ALLOW))
    return rules + _end(_ALLOW)


def _when(offset: int, value: int, then: bytes, mask: int = -1) -> bytes:
    """Do `then`, which must end, if the word at `offset`, masked, is `value`."""
    test = _step(_LOAD, offset)
    if mask != -1:
        test += _step(_AND, mask & 0xFFFFFFFF)
    return test + struct.pack("=HBBI", _EQUAL, 0, len(then) // 8, value) + then


def _end(answer: int) -> bytes:
    return _step(_RETURN, answer)


def _step(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def idle() -> None:
    """As process 1: children that lost their parent are reaped by ignoring SIGCHLD, and SIGTERM
    ends it (a process 1 never sees an unblocked signal that it has no handler for)."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with suppress(OSError):  # the server says so
        refuse_sockets()
    signal.sigwait([signal.SIGTERM])


if __name__ == "__main__":
    if sys.argv[1:]:
        refuse_sockets()
        os.execv(sys.argv[1], sys.argv[1:])
    idle()
