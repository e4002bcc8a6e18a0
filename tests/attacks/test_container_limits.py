"""Each confinement of the sandbox's container, tried from inside a real one."""

import uuid
from collections.abc import Callable, Iterator

import docker
import pytest

from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import CmdOutput
from resolver.runtime.base import Machine
from resolver.runtime.runtime import Runtime
from tests.parts.sandboxes import DOCKER_PYTHON, kinds

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("container-limits")]

in_container = pytest.mark.parametrize("sandbox_kind", kinds(DOCKER_PYTHON), scope="module")

DENIED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, *arguments):
    print(name, os.strerror(ctypes.get_errno()) if getattr(libc, name)(*arguments) < 0 else "DONE")
attempt("mount", b"none", b"/mnt", b"tmpfs", 0, None)
attempt("unshare", 0x10000000 | 0x00020000)
attempt("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)
attempt("chroot", b"/tmp")
attempt("mknod", b"/tmp/disk", 0o60600, os.makedev(254, 0))
attempt("syscall", 246, 0, 0, 0, 0)  # kexec_load
attempt("syscall", 321, 0, 0, 0)  # bpf
attempt("syscall", 250, 0, 0, 0, 0, 0)  # keyctl
attempt("syscall", 425, 8, 0)  # io_uring_setup
attempt("socket", 40, 1, 0)  # AF_VSOCK
attempt("socket", 17, 3, 0)  # AF_PACKET
"""


NARROW = f"test-narrow-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def narrow(sandbox_kind: str, new_machine: Callable[..., Machine]) -> Iterator[Runtime]:
    """A container with little of everything."""
    machine = new_machine(
        sandbox_kind,
        run=NARROW,
        memory="256m",
        cpus=0.5,
        pids=60,
        disk=50_000_000,
    )
    with Runtime(machine, command_timeout=60) as sandbox:
        yield sandbox


def run(sandbox: Runtime, command: str, timeout: float | None = None) -> CmdOutput:
    found = sandbox.execute(CmdRun(command=command, timeout=timeout))
    assert isinstance(found, CmdOutput), found
    return found


@in_container
def test_system_calls_that_lead_out_are_denied(narrow: Runtime) -> None:
    """A program makes system calls that lead out of a container: each is denied."""
    answers = narrow.execute(IPythonRunCell(code=DENIED)).content.strip().splitlines()
    assert len(answers) == 11
    assert [answer for answer in answers if answer.endswith("DONE")] == []


@in_container
def test_memory_is_limited(narrow: Runtime) -> None:
    """A program takes more memory than the limit: it is ended, and the sandbox stays usable."""
    assert run(narrow, "python3 -c 'bytearray(400 << 20)'").exit_code not in (0, None)
    assert run(narrow, "echo alive").content == "alive\n"


@in_container
def test_processes_and_processor_time_are_limited(
    narrow: Runtime, engine: docker.DockerClient
) -> None:
    """A program starts more processes than the limit: the kernel refuses them."""
    many = (
        "import subprocess\nchildren = []\ntry:\n"
        "    for _ in range(100): children.append(subprocess.Popen(['sleep', '60']))\n"
        "except OSError as error: print('refused', len(children) < 60)\n"
        "for child in children: child.kill()"
    )
    assert "refused True" in narrow.execute(IPythonRunCell(code=many)).content
    [container] = engine.containers.list(
        ignore_removed=True, filters={"label": f"resolver.run={NARROW}"}
    )
    limits = container.attrs["HostConfig"]
    assert limits["CpuQuota"] == limits["CpuPeriod"] // 2
    assert limits["MemorySwap"] == limits["Memory"] == 256 << 20
