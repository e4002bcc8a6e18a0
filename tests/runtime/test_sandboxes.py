"""Tests that a container leaves nothing behind."""

import os
from collections.abc import Callable

import docker
import pytest

from resolver.errors import SandboxError, SandboxLost
from resolver.events.actions import CmdRun
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
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
