"""Fixtures of the sandbox side: a bash, an IPython session, an editor, a whole server."""

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.sandbox.bash import Bash
from resolver.sandbox.editor import Editor
from resolver.sandbox.environment import Outputs, shell_environment
from resolver.sandbox.ipython import IPython, KernelCommand
from resolver.sandbox.processes import Family
from tests.sandbox.connection import Connection

SANDBOX = Path(__file__).parents[2] / "resolver" / "sandbox"
BASH = shutil.which("bash") or "/bin/bash"
OWN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "SECRET": "s3cret"}


@pytest.fixture(autouse=True, scope="session")
def signals_as_in_the_server() -> Iterator[None]:
    """Tests in the background inherit an ignored SIGINT, and so would each shell in them."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    return Outputs(str(tmp_path / "scratch"))


@pytest.fixture
def bash(programs: None, root: Path, outputs: Outputs) -> Iterator[Bash]:
    environment = shell_environment(OWN, False, None, {"EXTRA": "given"}, BASH)
    live = Bash(Family(), BASH, environment, str(root), outputs)
    yield live
    live.close()


@pytest.fixture(scope="module")
def ipython(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IPython]:
    folder = tmp_path_factory.mktemp("session")
    # Debian's Python has no pip of its own.
    path = f"{Path(sys.executable).parent}:{OWN['PATH']}"
    environment = shell_environment({**OWN, "PATH": path}, False, None, {}, BASH)
    start = (
        sys.executable,
        "-I",
        str(SANDBOX / "__main__.py"),
        "--kernel",
        str(folder / "ipython"),
    )
    live = IPython(
        Family(), KernelCommand(start, environment, str(folder)), Outputs(str(folder / "scratch"))
    )
    yield live
    live.close()


@pytest.fixture
def editor(root: Path, tmp_path: Path) -> Editor:
    return Editor(str(root), str(tmp_path / "scratch"))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folder copied to another place under another name, as in a toolbox."""
    target = tmp_path / "somewhere else" / "actor"
    shutil.copytree(SANDBOX, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


@pytest.fixture
def server(programs: None, copied: Path, root: Path, tmp_path: Path) -> Iterator[Connection]:
    connection = Connection(copied / "__main__.py", root, tmp_path / "scratch", BASH)
    yield connection
    connection.kill()
