"""`resolver gc` and the folders it knows."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from resolver.cli.main import run
from resolver.config.temporary_directory import (
    abandoned_directories,
    lock_directory,
    temporary_directory,
)
from resolver.runtime.docker import idle_containers
from resolver.runtime.engine import RUN_LABEL, remove_container
from resolver.runtime.services import SERVICE_LABEL


def test_a_folder_that_a_killed_process_has_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = tmp_path / "resolver-killed"
    (killed / "clone.git").mkdir(parents=True)
    os.close(lock_directory(killed))  # as the kernel does when a process ends
    with temporary_directory() as at_work:
        assert run(["gc"], {"DOCKER_HOST": "tcp://127.0.0.1:1"}) == 0
        assert f"removed folder {killed}\n1 removed\n" in capsys.readouterr().out
        assert [killed.exists(), at_work.exists()] == [False, True]
    assert not at_work.exists()


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
