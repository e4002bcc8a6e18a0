"""Tests of what the agent must not see, reach or exhaust, tried from inside."""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import CmdOutput
from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
from tests.parts.engine import wait_until_removed
from tests.parts.sandboxes import DOCKER_BUSYBOX, DOCKER_PYTHON, LOCAL, kinds, shared_kinds
from tests.parts.waiting import becomes_true

CANARY = "canary-4b1f0c"
every_sandbox = shared_kinds("isolation", LOCAL, DOCKER_BUSYBOX)
in_container = pytest.mark.parametrize("sandbox_kind", kinds(DOCKER_BUSYBOX))
# The processes of one test must not be counted by another that runs beside it.
pytestmark = [pytest.mark.xdist_group("isolation"), pytest.mark.usefixtures("namespaces")]

in_python_container = pytest.mark.parametrize("sandbox_kind", kinds(DOCKER_PYTHON))
local_only = pytest.mark.parametrize("sandbox_kind", kinds(LOCAL))

SEARCH = """
import glob
found = []
for kind in ("environ", "cmdline"):
    for path in glob.glob(f"/proc/[0-9]*/{kind}") + glob.glob(f"/proc/[0-9]*/task/*/{kind}"):
        try:
            if b"canary-" + b"4b1f0c" in open(path, "rb").read():
                found.append(path)
        except OSError:
            pass
print("found", found)
"""


def run(sandbox: Runtime, command: str, timeout: float | None = None) -> CmdOutput:
    found = sandbox.execute(CmdRun(command=command, timeout=timeout))
    assert isinstance(found, CmdOutput), found
    return found


def cell(sandbox: Runtime, code: str) -> str:
    return sandbox.execute(IPythonRunCell(code=code)).content


@pytest.fixture
def secret_holder() -> subprocess.Popen[bytes]:
    """A process of the host whose environment and command line hold a secret."""
    code = "import time; time.sleep(300)"
    environment = {**os.environ, "LLM_API_KEY": CANARY}
    with subprocess.Popen([sys.executable, "-c", code, CANARY], env=environment) as process:
        yield process
        process.kill()


@pytest.mark.attack
@every_sandbox
def test_no_host_process_is_visible(
    shared_sandbox: Runtime, secret_holder: subprocess.Popen[bytes]
) -> None:
    """A program lists processes: those of the host are not visible."""
    assert cell(shared_sandbox, SEARCH).strip() == "found []"
    listed = run(shared_sandbox, "echo /proc/[0-9]*").content.split()
    assert len(listed) < 20


@local_only
def test_a_secret_of_the_environment_is_not_inherited(sandbox_kind: str) -> None:
    environment = {**os.environ, "GITHUB_TOKEN": CANARY, "LLM_API_KEY": CANARY, "MY_VAR": CANARY}
    with Runtime(LocalMachine(SandboxSpec(image="", run="t"), environment), 30) as sandbox:
        assert CANARY not in run(sandbox, "export -p; set").content
        assert cell(sandbox, SEARCH).strip() == "found []"


@every_sandbox
def test_the_only_network_interface_is_loopback_and_it_works(shared_sandbox: Runtime) -> None:
    interfaces = "[line.split(':')[0].strip() for line in open('/proc/net/dev')][2:]"
    assert cell(shared_sandbox, interfaces).strip().endswith("['lo']")
    loopback = (
        "import socket; server = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(server.getsockname(), 2).close(); print('reached')"
    )
    assert "reached" in cell(shared_sandbox, loopback)


@pytest.mark.attack
@every_sandbox
def test_nothing_outside_is_reachable(shared_sandbox: Runtime) -> None:
    """A program connects to anything outside: unreachable."""
    for address in ("1.1.1.1", "169.254.169.254", "172.17.0.1"):
        code = f"import socket; socket.create_connection(({address!r}, 80), 3)"
        assert "unreachable" in cell(shared_sandbox, code)


@every_sandbox
def test_no_socket_leads_to_the_host_of_a_virtual_machine(shared_sandbox: Runtime) -> None:
    code = "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)"
    assert "Address family not supported" in cell(shared_sandbox, code)


@every_sandbox
def test_every_process_that_could_be_traced_is_behind_the_filter(shared_sandbox: Runtime) -> None:
    code = (
        "import glob\n"
        "for path in glob.glob('/proc/[0-9]*/status'):\n"
        "    fields = dict(line.split(':', 1) for line in open(path) if ':' in line)\n"
        "    print('Seccomp' in fields and fields['Seccomp_filters'].strip(), path)\n"
        "print('least', open('/proc/self/status').read().split('Seccomp_filters:')[1].split()[0])"
    )
    *others, own = cell(shared_sandbox, code).splitlines()
    assert others and {line.split()[0] for line in others} == {own.split()[1]}


@pytest.mark.attack
@every_sandbox
def test_no_capability_is_left_and_none_can_be_gained(shared_sandbox: Runtime) -> None:
    """A program uses or gains capabilities: there are none."""
    status = run(shared_sandbox, 'while read -r l; do echo "$l"; done < /proc/self/status').content
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert (fields["NoNewPrivs"].strip(), fields["Seccomp"].strip()) == ("1", "2")


@pytest.mark.attack
@every_sandbox
def test_the_engine_socket_can_not_be_used(shared_sandbox: Runtime) -> None:
    """A program connects to the Docker engine's socket: it can't."""
    code = (
        "import socket\n"
        "for path in ('/run/docker.sock', '/var/run/docker.sock'):\n"
        "    try:\n"
        "        socket.socket(socket.AF_UNIX).connect(path); print('CONNECTED', path)\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    assert "CONNECTED" not in cell(shared_sandbox, code)


@every_sandbox
def test_the_view_of_processes_can_not_be_undone(
    shared_sandbox: Runtime, secret_holder: subprocess.Popen[bytes]
) -> None:
    code = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.umount2(b'/proc', 2), libc.unshare(0x00020000))\n"
        "print(libc.mount(b'proc', b'/proc', b'proc', 0, None))\n"
    )
    assert cell(shared_sandbox, code).split() == ["-1", "-1", "-1"]
    nested = "print(libc.unshare(0x10000000 | 0x00020000), libc.umount2(b'/proc', 2))"
    assert cell(shared_sandbox, nested).split()[-1] == "-1"
    assert cell(shared_sandbox, SEARCH).strip() == "found []"


@shared_kinds("isolation", DOCKER_BUSYBOX)
def test_the_toolbox_is_read_only(shared_sandbox: Runtime) -> None:
    found = cell(shared_sandbox, "open('/opt/resolver/bin/evil', 'w')")
    assert "Read-only file system" in found
    assert run(shared_sandbox, "echo x > /opt/resolver/sandbox/__main__.py").exit_code != 0


@pytest.mark.attack
@in_container
def test_nothing_of_the_host_is_mounted_but_the_toolbox(
    sandbox_kind: str, new_machine: Callable[..., Machine], engine: docker.DockerClient
) -> None:
    """A program looks for mounts of the host: there is only the read-only toolbox."""
    name = f"test-mounts-{uuid.uuid4().hex}"
    with Runtime(new_machine(sandbox_kind, run=name), command_timeout=30):
        [container] = engine.containers.list(
            ignore_removed=True, filters={"label": f"resolver.run={name}"}
        )
    assert [(m["Destination"], m["RW"]) for m in container.attrs["Mounts"]] == [
        ("/opt/resolver", False)
    ]


@pytest.mark.attack
@in_container
def test_a_fork_bomb_ends_with_the_sandbox(
    sandbox_kind: str, new_machine: Callable[..., Machine], engine: docker.DockerClient
) -> None:
    """A fork bomb: its processes end with the sandbox."""
    bounded = Runtime(new_machine(sandbox_kind, pids=60, run="bomb"), command_timeout=5)
    with contextlib.suppress(SandboxError), bounded as sandbox:
        sandbox.execute(CmdRun(command="b() { b | b & }; b", timeout=2))
    wait_until_removed(engine, "bomb")


@in_python_container
def test_an_images_own_user_owns_the_repository(
    sandbox_kind: str,
    new_machine: Callable[..., Machine],
    engine: docker.DockerClient,
    python_image: str,
) -> None:
    made = engine.containers.create(python_image, "true")
    try:
        made.commit("resolver-test/user", "latest", conf={"User": "nobody:daemon"})
    finally:
        made.remove()
    try:
        machine = new_machine(sandbox_kind, image="resolver-test/user:latest")
        with Runtime(machine, command_timeout=30) as sandbox:
            assert run(sandbox, "id -un; id -gn").content.split() == ["nobody", "daemon"]
            assert run(sandbox, "git init -q . && git status --short && touch file").exit_code == 0
            assert run(sandbox, "touch /etc/evil").exit_code != 0
    finally:
        engine.images.remove("resolver-test/user:latest", force=True)


@local_only
def test_a_local_sandbox_leaves_nothing_behind(sandbox_kind: str, tmp_path: Path) -> None:
    spec = SandboxSpec(image="", run="t", environment={"MARK": CANARY})
    with Runtime(LocalMachine(spec, os.environ), 30) as sandbox:
        folder = Path(sandbox.root).parent
        run(sandbox, "(setsid nohup sleep 200 >/dev/null 2>&1 &); sleep 200 & disown; mkdir -m 0 x")
        assert folder.is_dir()
        assert marked_processes()
    assert not folder.exists()
    assert eventually_none(marked_processes)


def eventually_none(found: Callable[[], list[str]], seconds: float = 20) -> bool:
    """Wait until there are none: the kernel takes time to end the processes of a namespace."""
    return becomes_true(lambda: not found(), seconds)


def marked_processes() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={CANARY}".encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found
