"""A seccomp filter that restricts which kinds of sockets a program and its children can create.

Virtual machines talk to their host through AF_VSOCK sockets (vsock(7)), which no network namespace
holds back. A seccomp filter can't be removed once it is installed, and every child inherits it.

This file also runs as a script, with the standard library alone. With arguments it starts a program
behind the filter. Without arguments it is a container's first process: it installs the filter and
waits for SIGTERM:

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

ALLOWED_FAMILIES: Final = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""

# (AUDIT_ARCH_* of linux/audit.h, number of socket(2), number of socketcall(2) where it exists). One
# machine runs several kinds of programs: an x86_64 kernel also takes i386 system calls, with other
# numbers. A filter that checked the numbers alone could be evaded by switching the mode, so the
# numbers are looked at per architecture, and an unknown one gets ENOSYS for everything.
_ARCHITECTURES: Final = (
    (0xC000003E, 41, None),  # x86_64
    (0x40000003, 359, 102),  # i386
    (0xC00000B7, 198, None),  # aarch64
    (0x40000028, 281, 102),  # arm
)
# The x32 ABI reports the architecture x86_64 and sets this bit in the number; it is masked off.
_X32_BIT: Final = 0x40000000
_IO_URING_SETUP: Final = 425
"""Number of io_uring_setup(2), the same on every architecture.

Operations submitted through its rings, IORING_OP_SOCKET among them, do not pass the filter.
"""

_LOAD, _EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
NUMBER, ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little-endian
ALLOW, ERROR = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38


def refuse_sockets() -> None:
    """Restrict this thread and all that it starts to ALLOWED_FAMILIES of sockets, without io_uring.

    Raises OSError as `install_filter` does.
    """
    install_filter(_program())


def install_filter(program: bytes) -> None:
    """Install a filter for this thread and all that it starts, irrevocably.

    program: instructions of classic BPF (linux/filter.h). Raises OSError if the kernel has no
    seccomp filters or the processor is unknown. Source: seccomp(2).
    """
    if sys.byteorder != "little" or os.uname().machine not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, f"no filter for a {os.uname().machine}")
    buffer = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    # The kernel takes a filter from an unprivileged process only if neither it nor a child can gain
    # privileges by exec.
    libc.prctl(_PR_SET_NO_NEW_PRIVS, *arguments)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel takes no filter: {os.strerror(number)}")


def _program() -> bytes:
    """Return the filter as instructions of classic BPF (linux/filter.h).

    Source: https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html
    """
    program = b""
    for architecture, socket_call, multiplexer in _ARCHITECTURES:
        program += when(ARCHITECTURE, architecture, _rules(socket_call, multiplexer))
    return program + return_action(ERROR | errno.ENOSYS)


def _rules(socket_call: int, multiplexer: int | None) -> bytes:
    """Return the part of the filter for one architecture, given the numbers of its system calls."""
    families = b"".join(
        when(_FIRST_ARGUMENT, family, return_action(ALLOW)) for family in ALLOWED_FAMILIES
    )
    rules = when(NUMBER, _IO_URING_SETUP, return_action(ERROR | errno.ENOSYS), mask=~_X32_BIT)
    rules += when(
        NUMBER, socket_call, families + return_action(ERROR | errno.EAFNOSUPPORT), mask=~_X32_BIT
    )
    if multiplexer is not None:
        # A filter sees only registers, and the address family of socketcall(2) is in memory behind
        # a pointer. So SYS_SOCKET (1) is refused altogether; programs of the last ten years use
        # socket(2) itself.
        refuse_socket = when(_FIRST_ARGUMENT, 1, return_action(ERROR | errno.ENOSYS))
        rules += when(NUMBER, multiplexer, refuse_socket + return_action(ALLOW))
    return rules + return_action(ALLOW)


def when(offset: int, value: int, code: bytes, mask: int = -1) -> bytes:
    """Return code that runs `code` if the word at `offset`, masked with `mask`, equals `value`.

    `code` must end with a return instruction: classic BPF only jumps forward.
    """
    condition = _instruction(_LOAD, offset)
    if mask != -1:
        condition += _instruction(_AND, mask & 0xFFFFFFFF)
    return condition + struct.pack("=HBBI", _EQUAL, 0, len(code) // 8, value) + code


def return_action(action: int) -> bytes:
    return _instruction(_RETURN, action)


def _instruction(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def wait_for_sigterm() -> None:
    """Wait for SIGTERM as process 1 of a container.

    SIGCHLD is ignored, so that the kernel reaps orphaned children. SIGTERM is blocked and awaited,
    because the kernel discards an unblocked signal to process 1 that has no handler.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with suppress(OSError):  # starting the action server then fails and reports it
        refuse_sockets()
    signal.sigwait([signal.SIGTERM])


if __name__ == "__main__":
    if sys.argv[1:]:
        refuse_sockets()
        os.execv(sys.argv[1], sys.argv[1:])
    wait_for_sigterm()
