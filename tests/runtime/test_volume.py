"""Tests of filling the toolbox's volume."""

import io
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import docker
import pytest

from resolver.runtime.base import SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.toolbox import ENTRY, PREFIX, Toolbox
from resolver.runtime.volume import (
    fill_volume,
    remove_other_versions,
    toolbox_mount,
    volume_name,
)
from tests.parts.waiting import becomes_true, until

pytestmark = pytest.mark.engine


STARTED = re.compile(
    r"bin/(python|resolver-idle)|sandbox/|lib/(ld-|lib(c|m|z|ffi|expat|gcc_s|python)[0-9.-])"
    r"|lib/python[^/]*/([^/]+\.py$|__pycache__/|(collections|ctypes|encodings|lib-dynload|re)/)"
)
"""What the container's first program needs, where Python is a shared library too. The whole toolbox
is 100 MB, and each test here writes it to the engine's disk."""


@pytest.fixture(scope="module")
def small_archive(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive in the order of the toolbox's, with what a container needs to start."""
    path = tmp_path_factory.mktemp("toolbox") / "small.tar"
    with tarfile.open(toolbox.archive()) as whole, tarfile.open(path, "w") as small:
        for member in whole:
            if STARTED.match(member.name):
                small.addfile(member, whole.extractfile(member) if member.isfile() else None)
    return path


@pytest.fixture
def own_toolbox(
    engine: docker.DockerClient, small_archive: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Toolbox]:
    """A toolbox whose volume nobody else uses."""
    own = Toolbox(tmp_path)
    own.key = f"test-{abs(hash(request.node.name))}"
    (tmp_path / f"toolbox-{own.key}.tar").symlink_to(small_archive)
    yield own
    users = {"volume": volume_name(own)}
    until(lambda: not engine.containers.list(all=True, ignore_removed=True, filters=users))
    for volume in engine.volumes.list(filters={"name": volume_name(own)}):
        with suppress(docker.errors.NotFound):  # whoever fills another version takes it away
            volume.remove(force=True)


def machine(engine: docker.DockerClient, toolbox: Toolbox, image: str) -> DockerMachine:
    return DockerMachine(SandboxSpec(image=image, run="volume"), toolbox, engine)


def holds(engine: docker.DockerClient, toolbox: Toolbox, image: str, path: str) -> bool:
    looking = engine.containers.create(image, "x", mounts=[toolbox_mount(toolbox, read_only=True)])
    try:
        stream, _ = looking.get_archive(path)
        return len(list(stream)) > 0
    except docker.errors.NotFound:
        return False
    finally:
        looking.remove()


def test_many_that_start_at_once_all_start(
    engine: docker.DockerClient, own_toolbox: Toolbox, busybox_image: str
) -> None:
    failures: list[BaseException] = []

    def start() -> None:
        try:
            with machine(engine, own_toolbox, busybox_image):
                pass
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    (volume,) = engine.volumes.list(filters={"name": volume_name(own_toolbox)})
    assert volume.attrs["Labels"] == {"resolver.toolbox": own_toolbox.key}


FILL = """
import os, sys
from pathlib import Path
from resolver.runtime.engine import connect_engine
from resolver.runtime.toolbox import Toolbox
from resolver.runtime.volume import fill_volume
toolbox = Toolbox(Path(sys.argv[1]))
toolbox.key = sys.argv[2]
fill_volume(connect_engine(os.environ), toolbox, sys.argv[3])
"""


def test_a_killed_filling_is_repeated(
    engine: docker.DockerClient,
    own_toolbox: Toolbox,
    small_archive: Path,
    busybox_image: str,
    tmp_path: Path,
) -> None:
    arguments = [str(tmp_path), own_toolbox.key, busybox_image]
    with subprocess.Popen([sys.executable, "-c", FILL, *arguments]) as filler:
        users = {"volume": volume_name(own_toolbox)}
        until(lambda: engine.api.containers(all=True, filters=users) or filler.poll() is not None)
        becomes_true(lambda: filler.poll() is not None, 0.3)
        filler.kill()
    fill_volume(engine, own_toolbox, busybox_image)
    with tarfile.open(small_archive) as whole:
        files = {member.name: member.size for member in whole if member.isfile()}
    assert files_of(engine, own_toolbox, busybox_image) == files
    assert not engine.api.containers(all=True, filters=users)


def files_of(engine: docker.DockerClient, toolbox: Toolbox, image: str) -> dict[str, int]:
    """Each file of the volume, with its size."""
    looking = engine.containers.create(image, "x", mounts=[toolbox_mount(toolbox, read_only=True)])
    try:
        stream, _ = looking.get_archive(PREFIX)
        packed = io.BytesIO(b"".join(stream))
    finally:
        looking.remove()
    with tarfile.open(fileobj=packed) as tar:
        return {m.name.partition("/")[2]: m.size for m in tar if m.isfile()}


def test_an_image_can_not_put_files_into_the_toolbox(
    engine: docker.DockerClient, own_toolbox: Toolbox, busybox_image: str
) -> None:
    planting = engine.containers.create(busybox_image, "x")
    try:
        planting.put_archive("/", a_tar(f"{PREFIX.lstrip('/')}/bin/evil", b"#!/bin/sh"))
        planting.put_archive("/", a_tar(ENTRY.lstrip("/"), b"#!/bin/sh"))
        planting.commit("resolver-test/hostile", "latest")
    finally:
        planting.remove()
    try:
        with machine(engine, own_toolbox, "resolver-test/hostile:latest"):
            pass
        assert holds(engine, own_toolbox, busybox_image, ENTRY)
        assert not holds(engine, own_toolbox, busybox_image, f"{PREFIX}/bin/evil")
    finally:
        engine.images.remove("resolver-test/hostile:latest", force=True)


def test_an_older_version_that_nobody_uses_is_removed(
    engine: docker.DockerClient, own_toolbox: Toolbox
) -> None:
    name = "resolver-toolbox-test-old"
    old = engine.volumes.create(name, labels={"resolver.toolbox": "old"})
    made = datetime.fromisoformat(old.attrs["CreatedAt"])
    remove_other_versions(engine, own_toolbox, made - timedelta(seconds=1))
    assert engine.volumes.list(filters={"name": name})
    remove_other_versions(engine, own_toolbox, made)
    assert not engine.volumes.list(filters={"name": name})


def a_tar(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), 0o755
        tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()
