"""The processes of this machine, without a tool that a bare machine lacks."""

import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parts.waiting import until


@pytest.fixture(scope="session")
def programs() -> None:
    """What starts programs asks for this, and is then left out of `make check` as a whole: a shell
    that is cut off in the middle of its start would leave its descriptors to the next test."""


def count_running(command: str) -> int:
    """Return the number of processes with exactly this command line, without zombies."""
    return sum(_command(folder) == command for folder in Path("/proc").glob("[0-9]*"))


def act_on_start(command: str, act: Callable[[], object]) -> threading.Thread:
    """Start a thread that calls `act` as soon as a process with this command line is running."""

    def wait_and_act() -> None:
        until(lambda: count_running(command), pause=0.01)
        act()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread


def is_alive(pid: int) -> bool:
    """Return True if the process exists and one of its threads has not ended yet.

    A process whose main thread is a zombie can still have threads, and then open files as well:
    https://man7.org/linux/man-pages/man2/pidfd_open.2.html
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return select.select([descriptor], [], [], 0) == ([], [], [])
    finally:
        os.close(descriptor)


def _command(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes()
    except OSError:
        return ""
    return words.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
