"""A running sandbox of each kind: on this machine, and in containers of different images.

A kind `docker-NAME` is a container of the fixture `NAME_image`.
"""

import io
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import IPythonOutput
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import GitDirTar, Runtime

LOCAL = "local"
DOCKER_PYTHON = "docker-python"
DOCKER_BUSYBOX = "docker-busybox"
DOCKER_NONROOT = "docker-nonroot"
DOCKER_MUSL = "docker-musl"

EVERY_KIND = (LOCAL, DOCKER_PYTHON, DOCKER_BUSYBOX, DOCKER_MUSL, DOCKER_NONROOT)


def kinds(*names: str) -> list[Any]:
    """Parameters for `sandbox_kind`, those in containers marked as needing the engine."""
    return [
        pytest.param(name, marks=[pytest.mark.engine] if "docker" in name else [], id=name)
        for name in names
    ]


def shared_kinds(suite: str, *names: str) -> pytest.MarkDecorator:
    """Parametrises `sandbox_kind` for `shared_sandbox`: a worker has the tests of a kind."""
    values = [
        pytest.param(*kind.values, marks=[*kind.marks, pytest.mark.xdist_group(f"{suite}-{name}")],
                     id=name)
        for name, kind in zip(names, kinds(*names), strict=True)
    ]  # fmt: skip
    return pytest.mark.parametrize("sandbox_kind", values, scope="module")


@pytest.fixture(scope="session")
def new_machine(request: pytest.FixtureRequest) -> Callable[..., Machine]:
    """Makes a machine: new_machine(kind, **fields of SandboxSpec)."""

    def make(kind: str, **fields: Any) -> Machine:
        if kind == LOCAL:
            spec = SandboxSpec(**{"image": "", "run": "test", **fields})
            return LocalMachine(spec, os.environ)
        image = request.getfixturevalue(f"{kind.removeprefix('docker-')}_image")
        spec = SandboxSpec(**{"image": image, "run": "test", "memory": "512m", **fields})
        client, toolbox = (request.getfixturevalue(name) for name in ("engine", "toolbox"))
        return DockerMachine(spec, toolbox, client)

    return make


@pytest.fixture
def sandbox(sandbox_kind: str, new_machine: Callable[..., Machine]) -> Iterator[Runtime]:
    """A started sandbox of the parametrised `sandbox_kind`, without a repository."""
    with Runtime(new_machine(sandbox_kind), command_timeout=30) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def kept_sandbox(sandbox_kind: str, new_machine: Callable[..., Machine]) -> Iterator[Runtime]:
    """A started sandbox for all tests of a module with this `sandbox_kind`, which has to be
    parametrised with `shared_kinds`."""
    with Runtime(new_machine(sandbox_kind), command_timeout=30) as runtime:
        yield runtime


@pytest.fixture
def shared_sandbox(kept_sandbox: Runtime) -> Runtime:
    """The sandbox that the module's tests share: its shell and its IPython session are
    in the root, which is empty. For
    tests that neither end their sandbox nor need it untouched."""
    root = kept_sandbox.root
    clear = (
        f"import os, shutil\nos.chdir({root!r})\nfor entry in list(os.scandir()):\n"
        "    is_folder = entry.is_dir(follow_symlinks=False)\n"
        "    shutil.rmtree(entry) if is_folder else os.remove(entry)\nos.listdir()"
    )
    cleared = kept_sandbox.execute(IPythonRunCell(code=clear))
    assert isinstance(cleared, IPythonOutput) and "[]" in cleared.content, cleared
    kept_sandbox.execute(CmdRun(command=f"cd {root}"))
    return kept_sandbox


def _writable_for_everyone(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mode = 0o777 if member.isdir() else 0o666
    return member


def git_dir_tar(folder: Path, files: dict[str, bytes]) -> tuple[GitDirTar, str]:
    """A repository with one commit, as what gives the tar of its git directory, and the commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=T", "-c", "user.email=t@example.org"]
    folder.mkdir(parents=True)
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    (folder / ".git" / "index").unlink()

    def packed(name: str) -> Iterator[bytes]:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(folder / ".git", arcname=name, filter=_writable_for_everyone)
        yield file.getvalue()

    return packed, head.stdout.strip()
