"""Tests that a container leaves nothing behind."""

import os
from collections.abc import Callable

import docker
import pytest
from docker.models.containers import Container

from resolver.errors import SandboxError, SandboxLost
from resolver.events.actions import CmdRun
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.engine import RUN_LABEL
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import BASH
from tests.parts.engine import wait_until_removed
from tests.parts.sandboxes import DOCKER_PYTHON, kinds

NewMachine = Callable[..., Machine]


@pytest.mark.parametrize("sandbox_kind", kinds(DOCKER_PYTHON))
def test_no_container_is_left(
    engine: docker.DockerClient, sandbox_kind: str, new_machine: NewMachine
) -> None:
    with Runtime(new_machine(sandbox_kind, run="left-over"), command_timeout=30) as sandbox:
        sandbox.execute(CmdRun(command="sleep 100 & nohup sleep 100 &"))
        assert containers(engine, "left-over") == 1
    wait_until_removed(engine, "left-over")


@pytest.mark.parametrize("sandbox_kind", kinds(DOCKER_PYTHON))
def test_a_failure_while_starting_leaves_no_container(
    engine: docker.DockerClient, sandbox_kind: str, new_machine: NewMachine
) -> None:
    machine = new_machine(sandbox_kind, run="bad-start", memory="1k")
    with pytest.raises(SandboxError, match="could not be started"):
        machine.__enter__()
    wait_until_removed(engine, "bad-start")


def pause(container: Container) -> None:
    container.pause()


def stop_processes(container: Container) -> None:
    container.exec_run([BASH, "-c", "kill -STOP -1"])


@pytest.mark.engine
@pytest.mark.parametrize("suspend", [pause, stop_processes])
def test_a_container_that_hangs_is_lost_and_removed(
    suspend: Callable[[Container], None],
    engine: docker.DockerClient,
    new_machine: NewMachine,
) -> None:
    machine = new_machine(DOCKER_PYTHON, run="hangs")
    with (
        pytest.raises(SandboxLost, match="did not answer `run_command` in 3 seconds"),
        Runtime(machine, command_timeout=30, answer_seconds=2) as sandbox,
    ):
        [container] = engine.containers.list(filters={"label": f"{RUN_LABEL}=hangs"})
        suspend(container)
        sandbox.execute(CmdRun(command="true", timeout=1))
    wait_until_removed(engine, "hangs")


def containers(engine: docker.DockerClient, run: str) -> int:
    return len(
        engine.containers.list(
            all=True, ignore_removed=True, filters={"label": f"resolver.run={run}"}
        )
    )


class UnremovableMachine(LocalMachine):
    """A machine whose engine hangs when the sandbox is to be removed."""

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        raise SandboxError("the container could not be removed", "remove it")


def test_a_sandbox_that_can_not_be_removed_does_not_hide_that_it_was_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def machine() -> UnremovableMachine:
        return UnremovableMachine(SandboxSpec(image="", run="test"), os.environ)

    with pytest.raises(SandboxLost), Runtime(machine(), command_timeout=30):
        raise SandboxLost("the sandbox was lost: the action server did not answer")
    assert "could not be removed" in caplog.text
    with (
        pytest.raises(SandboxError, match="could not be removed"),
        Runtime(machine(), command_timeout=30),
    ):
        pass
