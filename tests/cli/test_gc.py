"""`resolver gc` and the folders it knows."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from resolver.config.temporary_directory import (
    abandoned_directories,
    lock_directory,
)
from resolver.runtime.docker import idle_containers
from resolver.runtime.engine import RUN_LABEL, remove_container
from resolver.runtime.services import SERVICE_LABEL

RESOLVER = str(Path(sys.executable).with_name("resolver"))
HOLD = """
import sys
from resolver.config.temporary_directory import temporary_directory
with temporary_directory() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a scratch folder in tmp_path."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        yield process
        process.kill()


def gc(tmp: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RESOLVER, "gc", *options],
        env={**os.environ, "TMPDIR": str(tmp)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_killed_process_leaves_a_folder_that_is_found_and_removed(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert holder.stdout is not None
    folder = Path(holder.stdout.readline().strip())
    assert abandoned_directories(tmp_path, os.geteuid()) == []
    holder.kill()
    holder.wait()
    assert abandoned_directories(tmp_path, os.geteuid()) == [folder]
    done = gc(tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"removed folder {folder}" in done.stdout
    assert not folder.exists()


def test_a_folder_at_work_a_foreign_one_and_a_link_stay(tmp_path: Path) -> None:
    (tmp_path / "resolver-mine").mkdir()
    descriptor = lock_directory(tmp_path / "resolver-mine")
    (tmp_path / "resolver-other").mkdir()
    (tmp_path / "resolver-link").symlink_to(tmp_path / "resolver-mine")
    (tmp_path / "resolver-file").write_text("")
    try:
        assert abandoned_directories(tmp_path, os.geteuid()) == []
    finally:
        os.close(descriptor)
    assert abandoned_directories(tmp_path, os.geteuid() + 1) == []
    assert abandoned_directories(tmp_path, os.geteuid()) == [tmp_path / "resolver-mine"]


def names(containers: list[Container]) -> set[str | None]:
    return {container.name for container in containers}


@pytest.mark.engine
def test_containers_that_nobody_uses_are_distinguished_from_those_at_work(
    engine: docker.DockerClient, busybox_image: str
) -> None:
    options = {"labels": {RUN_LABEL: "gc-test"}, "network_mode": "none"}
    made_containers = [
        engine.containers.run(busybox_image, ["sleep", "300"], detach=True, **options)
        for _ in range(2)
    ]
    idle, busy = made_containers
    try:
        made = engine.api.exec_create(busy.id, ["sleep", "300"])
        engine.api.exec_start(made["Id"], detach=True)
        ended = engine.api.exec_create(idle.id, ["true"])
        engine.api.exec_start(ended["Id"])
        now = datetime.now(UTC)
        assert idle.name not in names(idle_containers(engine, now))
        later = names(idle_containers(engine, now + timedelta(minutes=6)))
        assert idle.name in later
        assert busy.name not in later
        # A service is in use as long as its sandbox.
        services = [
            engine.containers.run(
                busybox_image, ["sleep", "300"], detach=True,
                network_mode=f"container:{sandbox.id}",
                labels={RUN_LABEL: "gc-test", SERVICE_LABEL: sandbox.id},
            )
            for sandbox in (idle, busy)
        ]  # fmt: skip
        made_containers += services
        later = names(idle_containers(engine, now + timedelta(minutes=6)))
        assert [service.name in later for service in services] == [True, False]
    finally:
        for container in made_containers:
            remove_container(container)
