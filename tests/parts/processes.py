"""The processes of this machine, without a tool that a bare machine lacks."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def programs() -> None:
    """What starts programs asks for this, and is then left out of `make check` as a whole: a shell
    that is cut off in the middle of its start would leave its descriptors to the next test."""


def count_running(command: str) -> int:
    """How many processes have exactly this command line, zombies not counted."""
    return sum(_command(folder) == command for folder in Path("/proc").glob("[0-9]*"))


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    return _command(Path(f"/proc/{pid}")) != ""


def _command(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes()
    except OSError:
        return ""
    return words.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
