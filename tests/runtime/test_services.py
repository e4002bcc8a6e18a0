"""Services next to a Docker sandbox: reachable at localhost, without a network, gone afterwards."""

import docker
import pytest

from resolver.errors import ServiceUnavailable
from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.models.verification import CheckService, ProjectCheck
from resolver.runs.check_sandboxes import SERVICE_FAILED, SandboxExecutor
from resolver.runtime.base import SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import RUN_LABEL
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.services import SERVICE_LABEL
from resolver.runtime.toolbox import Toolbox

RUN = "services-test"
ASK = "exec 3<>/dev/tcp/web/8099; printf 'GET /word HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
SERVE = 'echo "$WORD" > /tmp/word; cd /tmp; exec /bin/busybox httpd -f -p 8099'


def service(image: str, *command: str) -> CheckService:
    return CheckService(
        name="web", image=image, environment={"WORD": "hello"}, ports=(8099,), command=command
    )


def run(sandbox: Runtime, command: str) -> str:
    found = sandbox.execute(CmdRun(command=command))
    assert isinstance(found, CmdOutput), found
    return found.content


def containers(engine: docker.DockerClient, run: str) -> list[str]:
    filters = {"label": [f"{RUN_LABEL}={run}", SERVICE_LABEL]}
    return [
        container.short_id
        for container in engine.containers.list(all=True, ignore_removed=True, filters=filters)
    ]


def never() -> bool:
    return False


@pytest.mark.engine
def test_a_service_runs_while_a_check_does_and_reaches_nothing(
    engine: docker.DockerClient, python_image: str, busybox_image: str, toolbox: Toolbox
) -> None:
    spec = SandboxSpec(image=python_image, run="services-ready")
    web = service(busybox_image, "sh", "-c", f"mkdir -p /tmp; {SERVE}")
    with Runtime(DockerMachine(spec, toolbox, engine, ("web",)), 60) as sandbox:
        with sandbox.run_services((web,), 60, never):
            assert "hello" in run(sandbox, ASK)
            [service_id] = containers(engine, spec.run)
            found = engine.containers.get(service_id)
            shown = found.exec_run(["/bin/busybox", "ls", "/sys/class/net"]).output.split()
            assert shown == [b"lo"]
            host = found.attrs["HostConfig"]
            assert host["Memory"] > 0 and host["PidsLimit"] == spec.pids
            assert host["CapDrop"] == ["ALL"] and not host["Binds"] and not host["Privileged"]
            assert found.attrs["Config"]["StdinOnce"]
        assert containers(engine, spec.run) == []
        # The next check gets a service of its own.
        with sandbox.run_services((web,), 60, never):
            assert "hello" in run(sandbox, ASK)


@pytest.mark.engine
def test_a_service_that_ends_or_never_listens_is_said_with_its_output(
    engine: docker.DockerClient, busybox_image: str, toolbox: Toolbox
) -> None:
    spec = SandboxSpec(image=busybox_image, run="services-failing")
    ends = service(busybox_image, "sh", "-c", "echo no space left; exit 1")
    silent = service(busybox_image, "sleep", "300")
    with Runtime(DockerMachine(spec, toolbox, engine), 60) as sandbox:
        with (
            pytest.raises(ServiceUnavailable, match=r"it ended.*\nno space left"),
            sandbox.run_services((ends,), 60, never),
        ):
            pytest.fail("it must not get here")
        with (
            pytest.raises(ServiceUnavailable, match="did not listen"),
            sandbox.run_services((silent,), 1, never),
        ):
            pytest.fail("it must not get here")
        with (
            pytest.raises(ServiceUnavailable, match="interrupted"),
            sandbox.run_services((silent,), 60, lambda: True),
        ):
            pytest.fail("it must not get here")
        assert containers(engine, spec.run) == []


def test_the_local_runtime_has_no_services() -> None:
    machine = LocalMachine(SandboxSpec(image="", run=RUN), {})
    with pytest.raises(ServiceUnavailable, match="local runtime"):
        machine.run_services((service("postgres"),), 1, never)
    with machine.run_services((), 1, never):
        pass


def test_a_check_without_its_service_did_not_run() -> None:
    runtime = Runtime(LocalMachine(SandboxSpec(image="", run=RUN), {}), 30)
    check = ProjectCheck(name="unit", command="true", services=(service("postgres"),))
    done = SandboxExecutor(runtime, lambda: None).execute(check, 5)
    assert (done.exit_code, done.report_complete) == (SERVICE_FAILED, False)
    assert "can't start services" in done.output
