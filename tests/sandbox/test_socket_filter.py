"""Tests of the socket filter with programs that try to bypass it."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFINE = Path(__file__).parents[2] / "resolver" / "sandbox" / "socket_filter.py"


def _behind(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-S", CONFINE, sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_sockets_of_the_sandbox_itself_work() -> None:
    kinds = "(s.AF_UNIX, 1), (s.AF_INET, 1), (s.AF_INET6, 1), (s.AF_NETLINK, s.SOCK_RAW)"
    code = f"import socket as s\nfor kind in ({kinds}): s.socket(*kind).close(); print('open')"
    assert _behind(code) == "open\n" * 4


@pytest.mark.attack
def test_other_socket_families_are_refused() -> None:
    """A program opens sockets of other families: refused."""
    code = """
import socket as s
for family in (s.AF_VSOCK, s.AF_PACKET, s.AF_ALG, s.AF_CAN):
    for kind in (s.SOCK_STREAM, s.SOCK_DGRAM, s.SOCK_SEQPACKET):
        try:
            s.socket(family, kind)
        except OSError as error:
            print(error.strerror)
"""
    assert _behind(code) == "Address family not supported by protocol\n" * 12


def test_the_filter_applies_to_children_and_threads() -> None:
    code = (
        "import subprocess, sys, threading\n"
        "child = [sys.executable, '-c', 'import socket; socket.socket(40)']\n"
        "t = threading.Thread(target=lambda: subprocess.run(child)); t.start(); t.join()\n"
    )
    assert "Address family not supported" in _behind(code)


@pytest.mark.parametrize(
    ("call", "number"),
    [("io_uring_setup", 425), ("the x32 way", 0x40000000 | 41), ("any family", 41)],
)
@pytest.mark.skipif(sys.maxsize < 2**32, reason="numbers of 64-bit processors")
def test_other_system_call_numbers_are_refused(call: str, number: int) -> None:
    code = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        f"print(libc.syscall(ctypes.c_long({number}), ctypes.c_long(40), ctypes.c_long(1), 0) < 0)"
    )
    assert _behind(code) == "True\n"


@pytest.mark.attack
def test_the_filter_can_not_be_removed() -> None:
    """A program removes the filter of its system calls: it can't."""
    code = (
        "import ctypes, socket; libc = ctypes.CDLL(None)\n"
        "print(libc.prctl(22, 0, 0, 0, 0) != 0, libc.prctl(38, 0, 0, 0, 0) != 0)\n"
        "socket.socket(socket.AF_VSOCK)\n"
    )
    output = _behind(code)
    assert output.startswith("True True") and "Address family not supported" in output
