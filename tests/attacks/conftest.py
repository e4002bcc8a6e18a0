"""The stage on which attacks are played, on this machine and in a container."""

import os
from pathlib import Path

import pytest

from tests.attacks.canaries import CANARIES
from tests.attacks.stage import Stage
from tests.parts.runs import CommandLine, make_checkout

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "README.md": "# calc\n",
    ".github/workflows/ci.yml": "on: push\n",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/attacks/"):
            item.add_marker("attack")


@pytest.fixture
def runtime() -> str:
    """The runtime of the attacks, unless a test has its own."""
    return "local"


@pytest.fixture
def stage(
    tmp_path: Path, command_line: CommandLine, runtime: str, request: pytest.FixtureRequest
) -> Stage:
    """A stage whose program runs the sandbox of kind `runtime`."""
    if runtime == "local":
        request.getfixturevalue("namespaces")
    made = Stage(tmp_path, command_line, make_checkout(tmp_path / "calc", FILES))
    cache = os.environ.get("XDG_CACHE_HOME") or f"{Path.home()}/.cache"
    command_line.environment |= {
        **CANARIES,
        "HOME": str(made.home),
        "TMPDIR": str(made.temporary),
        "XDG_CACHE_HOME": cache,
        "RESOLVER_RUNTIME": runtime,
    }
    if runtime == "docker":
        command_line.environment |= {
            "RESOLVER_IMAGE": request.getfixturevalue("python_image"),
            "RESOLVER_MEMORY": "512m",
        }
    return made
