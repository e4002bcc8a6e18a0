"""A real Docker engine, the images that tests run in, and the toolbox of this checkout."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from resolver.errors import SandboxError
from resolver.git.clone import repository_identity
from resolver.runtime.engine import RUN_LABEL, connect_engine
from resolver.runtime.environment.images import REPOSITORY_LABEL, derive_key
from resolver.runtime.toolbox import Toolbox
from tests.parts.missing import skip_without
from tests.parts.waiting import until

PYTHON_IMAGE = "resolver-test/python:latest"
"""Debian 12 with Python 3.11, pip and git."""

BUSYBOX_IMAGE = "resolver-test/busybox:latest"
"""One static busybox: no libc, Python, bash or git."""

MUSL_IMAGE = "resolver-test/musl:latest"
"""musl, a shell, and ninja linked against it."""

NONROOT_IMAGE = "resolver-test/nonroot:latest"
"""The Python image with user 1000 as the one that everything runs as."""

POSTGRES_IMAGE, REDIS_IMAGE = "resolver-test/postgres:15", "resolver-test/redis:7"
"""PostgreSQL and Redis of Debian with the entrypoints of the images `postgres` and `redis`."""

TOOLBOX_CACHE = Path.home() / ".cache" / "resolver"


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine on this machine."""
    try:
        client = connect_engine(os.environ, 120)
    except SandboxError as error:
        skip_without("Docker", error.what)
    yield client
    client.close()


def wait_until_removed(engine: docker.DockerClient, run: str) -> None:
    """Wait until the engine has no container of the run, running or not. It removes them by itself
    after their processes have ended. Fails if one stays."""
    filters = {"label": f"{RUN_LABEL}={run}"}
    until(lambda: not engine.containers.list(all=True, ignore_removed=True, filters=filters))


@pytest.fixture(scope="session")
def musl_image(engine: docker.DockerClient) -> str:
    """Name of an image whose libc is musl."""
    return _image(engine, MUSL_IMAGE, "musl")


@pytest.fixture(scope="session")
def nonroot_image(engine: docker.DockerClient) -> str:
    """Name of an image whose user is not root."""
    return _image(engine, NONROOT_IMAGE, "nonroot")


@pytest.fixture(scope="session")
def python_image(engine: docker.DockerClient) -> str:
    """Name of an image that has Python, pip and git."""
    return _image(engine, PYTHON_IMAGE, "python")


@pytest.fixture(scope="session")
def busybox_image(engine: docker.DockerClient) -> str:
    """Name of an image that has nothing but a static busybox."""
    return _image(engine, BUSYBOX_IMAGE, "busybox")


@pytest.fixture(scope="session")
def service_images(engine: docker.DockerClient) -> tuple[str, str]:
    """Names of images of PostgreSQL and Redis. Each has Python and the clients of both."""
    _image(engine, REDIS_IMAGE, "services")
    return POSTGRES_IMAGE, REDIS_IMAGE


@pytest.fixture
def own_images(engine: docker.DockerClient, tmp_path: Path) -> Iterator[None]:
    """The built and prepared images of the checkouts in tmp_path are removed at the test's end;
    other tests use the engine at the same time."""
    yield
    for folder in tmp_path.iterdir():
        owner = derive_key("repository", repository_identity(str(folder)))
        for image in engine.api.images(filters={"label": f"{REPOSITORY_LABEL}={owner}"}):
            for tag in image["RepoTags"] or ():
                engine.images.remove(tag, force=True)


@pytest.fixture(scope="session")
def toolbox() -> Toolbox:
    """The toolbox of this checkout, cached between test runs."""
    return Toolbox(TOOLBOX_CACHE)


def _image(engine: docker.DockerClient, name: str, part: str) -> str:
    try:
        engine.images.get(name)
    except docker.errors.ImageNotFound:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            skip_without(name, "tests/parts/images.sh makes it as root on Debian")
        script = Path(__file__).with_name("images.sh")
        made = subprocess.run([script, part], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            skip_without(name, f"it could not be made: {made.stderr[-500:]}")
    return name
