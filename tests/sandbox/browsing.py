"""A browser behind a real action server, with shortcuts for tests."""

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.parts.waiting import becomes_true
from tests.sandbox.connection import Connection
from tests.sandbox.site import serve_site

MAIN = Path(__file__).parents[2] / "resolver" / "sandbox" / "__main__.py"
BASH = shutil.which("bash") or "/bin/bash"


def pids_with(words: str) -> list[int]:
    """Processes of this machine whose command line has these words, zombies not counted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if words.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def are_gone(words: str, seconds: float = 60) -> bool:
    """No process has these words; those that were killed just now may take their time to end."""
    return becomes_true(lambda: not pids_with(words), seconds)


class Browsing:
    """One server with its browser; `site` is the address of the pages."""

    def __init__(self, connection: Connection, site: str, root: Path) -> None:
        self.connection = connection
        self.site = site
        self.root = root
        self.shown: dict[str, Any] = {}

    def end(self) -> int:
        """The end of the server's input; its exit code."""
        code = self.connection.end_of_input()
        self.connection.kill()
        return code

    def run(self, code: str, timeout: float = 60) -> str:
        """The text of the result; the whole of it is kept in `shown`."""
        self.shown = self.connection.call("browse", code=code, timeout=timeout)
        return str(self.shown["output"])

    def open(self, path: str, timeout: float = 60) -> str:
        """A page of the site, in the active tab."""
        return self.run(f"goto('{self.site}{path}')", timeout)

    def bid(self, words: str) -> str:
        """The id of the element whose line has these words."""
        for line in str(self.shown["output"]).splitlines():
            found = re.match(r"\s*\[(\d+)\] ", line)
            if found and words in line:
                return found[1]
        raise AssertionError(f"{words!r} is not in\n{self.shown['output']}")

    def click(self, words: str, timeout: float = 60) -> str:
        return self.run(f"click('{self.bid(words)}')", timeout)


def start_browsing(folder: Path, site: str, *more: str) -> Browsing:
    root = folder / "workspace"
    root.mkdir()
    connection = Connection(MAIN, root, folder / "scratch", BASH, "--keep-environment", *more)
    return Browsing(connection, site, root)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serve_site() as address:
        yield address


@pytest.fixture(scope="module")
def browsing(
    chromium_program: str, site: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browsing]:
    """One browser for a module's tests."""
    live = start_browsing(tmp_path_factory.mktemp("b"), site)
    yield live
    live.end()
