"""Tests of reaching a local or remote engine, and of the error without one."""

import contextlib
from collections.abc import Callable

import docker
import pytest

from resolver.errors import SandboxError, SandboxLost
from resolver.runtime.base import Machine
from resolver.runtime.client import wrap_file
from resolver.runtime.engine import (
    RUN_LABEL,
    connect_engine,
    end_container,
    engine_answers,
    image_settings,
    remove_leftovers,
)
from tests.parts.engine import wait_until_removed
from tests.parts.sandboxes import DOCKER_PYTHON


def test_without_an_engine_the_error_says_what_was_tried_and_the_alternatives() -> None:
    environment = {"DOCKER_HOST": "tcp://127.0.0.1:1"}
    assert not engine_answers(environment)
    with pytest.raises(SandboxError) as error:
        connect_engine(environment)
    assert "tcp://127.0.0.1:1" in error.value.what
    assert "RESOLVER_RUNTIME=local" in error.value.next_step


@pytest.mark.parametrize("host", ["nonsense", "http://", "ftp://127.0.0.1"])
def test_a_wrong_docker_host_is_an_error(host: str) -> None:
    assert not engine_answers({"DOCKER_HOST": host})


@pytest.mark.parametrize("use", [connect_engine, engine_answers])
def test_an_engine_behind_ssh_is_an_error_instead_of_the_local_runtime(
    use: Callable[[dict[str, str]], object],
) -> None:
    with pytest.raises(SandboxError, match="SSH is not spoken here") as error:
        use({"DOCKER_HOST": "ssh://builder.test"})
    assert "ssh -N -L" in error.value.next_step


@pytest.mark.engine
def test_an_unavailable_image_is_named(engine: docker.DockerClient) -> None:
    image = "127.0.0.1:1/no/such:image"
    with pytest.raises(SandboxError) as error:
        image_settings(engine, image)
    assert image in error.value.what
    assert "RESOLVER_IMAGE" in error.value.next_step


@pytest.mark.engine
def test_a_container_that_is_killed_before_its_server_starts_is_a_lost_sandbox(
    engine: docker.DockerClient, new_machine: Callable[..., Machine]
) -> None:
    with new_machine(DOCKER_PYTHON, run="killed") as machine:
        with pytest.raises(SandboxError) as refused:
            machine.put_archive("/no/such/folder", wrap_file("a", iter([b""])))
        assert not isinstance(refused.value, SandboxLost)
        [container] = engine.containers.list(filters={"label": f"{RUN_LABEL}=killed"})
        container.kill()
        with pytest.raises(SandboxLost):
            machine.put_archive("/tmp", wrap_file("a", iter([b""])))
        with pytest.raises(SandboxLost):
            machine.connect()


@pytest.mark.engine
def test_remains_of_a_run_can_be_removed_by_its_id(
    engine: docker.DockerClient, new_machine: Callable[..., Machine]
) -> None:
    machine = new_machine(DOCKER_PYTHON, run="abandoned")
    machine.__enter__()
    assert remove_leftovers(engine, "abandoned") == 1
    assert remove_leftovers(engine, "abandoned") == 0
    machine.__exit__()


@pytest.mark.engine
def test_a_container_is_ended_whether_it_runs_or_not(
    engine: docker.DockerClient, python_image: str
) -> None:
    """When `end_container` returns, none of its processes is left, and the engine removes it."""
    running, created = [
        engine.containers.create(
            python_image, ["sleep", "100"], auto_remove=True, labels={RUN_LABEL: "ended"}
        )
        for _ in range(2)
    ]
    running.start()
    end_container(running)
    with contextlib.suppress(docker.errors.NotFound):
        running.reload()
        assert not running.attrs["State"]["Running"]
    end_container(created)
    wait_until_removed(engine, "ended")
    end_container(running)
