"""What the sandbox on this machine gets to see of the machine's files, asked from inside."""

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import CmdOutput
from resolver.events.stores import JsonlStore
from resolver.runs.output import Output
from resolver.runtime.base import SandboxSpec
from resolver.runtime.local import CREDENTIALS, LocalMachine
from resolver.runtime.runtime import Runtime
from tests.attacks.stage import Stage
from tests.parts.runs import finish

pytestmark = pytest.mark.usefixtures("namespaces")

CONNECT = """
import os, socket
try:
    socket.socket(socket.AF_UNIX).connect({path!r}); print("connected")
except OSError:
    print("refused")
try:
    os.write(os.open({pipe!r}, os.O_WRONLY | os.O_NONBLOCK), b"from inside"); print("written")
except OSError:
    print("refused")
"""
CANARY = "file-canary-6b5a49382716f5e4d3c2b1a0"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A person's home folder, outside of the folders for temporary files."""
    (Path.home() / ".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=Path.home() / ".cache") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def sandbox(home: Path) -> Iterator[Runtime]:
    """A sandbox of somebody whose home folder is full of credentials, for all tests."""
    for name in (*CREDENTIALS, "notes.txt"):
        file = home / name
        if file.suffix or name in (".netrc", ".git-credentials", ".npmrc", ".pypirc"):
            file.parent.mkdir(parents=True, exist_ok=True)
        else:
            file.mkdir(parents=True, exist_ok=True)
            file /= "token"
        file.write_text(CANARY)
    environment = {**os.environ, "HOME": str(home)}
    with Runtime(LocalMachine(SandboxSpec(image="", run="t"), environment), 30) as runtime:
        assert "read-only" in runtime.isolation
        yield runtime


def run(sandbox: Runtime, command: str) -> CmdOutput:
    found = sandbox.execute(CmdRun(command=command))
    assert isinstance(found, CmdOutput), found
    return found


def test_a_persons_credentials_are_covered_and_stay_covered(home: Path, sandbox: Runtime) -> None:
    """With the local runtime, programs read credential files and undo mounts: the files stay
    covered."""
    found = run(sandbox, f"grep -rl canary '{home}'").content.split()
    assert found == [str(home / "notes.txt")]
    undo = (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        "print(libc.unshare(0x10000000 | 0x00020000))\n"
        f"print(libc.umount2(b'{home}/.netrc', 2), libc.umount2(b'/tmp', 2))\n"
        f"print(repr(open('{home}/.netrc').read()))"
    )
    assert CANARY not in sandbox.execute(IPythonRunCell(code=undo)).content


def test_logs_and_clones_of_other_runs_are_hidden(home: Path) -> None:
    """With the local runtime, programs search for logs, clones and traces of other runs: they
    are hidden."""
    log = home / ".local/state/resolver/20260102-other/events.jsonl"
    clone = home / ".cache/resolver/clones/octo/private.git/HEAD"
    data = home / "data/runs/x/trace.md"
    for file in (log, clone, data):
        file.parent.mkdir(parents=True)
        file.write_text(CANARY)
    environment = {**os.environ, "HOME": str(home), "RESOLVER_DATA_DIR": str(home / "data")}
    environment = {k: v for k, v in environment.items() if not k.startswith("XDG_")}
    with Runtime(LocalMachine(SandboxSpec(image="", run="t"), environment), 30) as sandbox:
        found = run(sandbox, f"grep -rl canary '{home}'").content.split()
    assert set(found) <= {str(home / "notes.txt")}
    assert log.read_text() == CANARY


@pytest.mark.parametrize(("shared", "modes"), [(False, {0o700, 0o600}), (True, {0o755, 0o644})])
def test_files_of_a_run_are_its_users_alone_unless_the_next_steps_of_a_job_read_them(
    tmp_path: Path, shared: bool, modes: set[int]
) -> None:
    """Another user of the machine opens the files of a run: only their owner can."""
    before = os.umask(0o022)
    try:
        output = Output(tmp_path / "run", shared=shared)
        JsonlStore(output.log, output.file_mode).close()
        output.log.write_bytes(b"torn")
        JsonlStore(output.log, output.file_mode).close()
        output.write_patch(b"")
        output.write_review("")
        output.write_traces([])
        output.move_earlier_files()
        output.begin_with([])
        output.close()
    finally:
        os.umask(before)
    paths = [output.folder, *output.folder.rglob("*")]
    assert len(paths) == 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == modes


def test_files_of_a_run_are_private_in_a_folder_that_is_not(stage: Stage) -> None:
    """Another user opens a run's files in a folder that is open to all: none can be."""
    output = stage.folder / "output"
    output.mkdir(mode=0o755)
    done = stage.play(finish("Nothing to do"), options=("--output", str(output)))
    assert done.exit_code == 3, done.stderr
    assert {stat.S_IMODE(path.stat().st_mode) for path in output.iterdir()} == {0o600}


def test_files_of_the_machine_are_read_only_and_can_not_be_made_writable(
    home: Path, sandbox: Runtime
) -> None:
    """With the local runtime, programs remount the machine's files to write them: they stay
    read-only."""
    remount = (
        "import ctypes, os; libc = ctypes.CDLL(None)\n"
        "print(libc.mount(None, b'/', None, 32 | 4096, None))\n"
        "print(libc.unshare(0x10000000 | 0x00020000))\n"
        "print(libc.mount(None, b'/', None, 32 | 4096, None))\n"
        f"open('{home}/notes.txt', 'a')"
    )
    answer = sandbox.execute(IPythonRunCell(code=remount)).content
    assert "Read-only file system" in answer
    assert answer.split()[0] == "-1"
    for place in (home, Path(__file__).parent, Path("/usr/local"), Path("/dev/shm/..")):
        assert run(sandbox, f"touch '{place}/resolver-marker' && rm '{place}/resolver-marker'")
        assert not (place / "resolver-marker").exists()
    assert (home / "notes.txt").read_text() == CANARY


def test_temporary_files_of_others_are_not_seen_and_ours_are_gone_at_the_end(
    tmp_path: Path, sandbox: Runtime
) -> None:
    """With the local runtime, programs list temporary files of others: none is visible."""
    (tmp_path / "clone").mkdir()
    names = run(sandbox, f"ls '{tmp_path}' 2>&1; ls /tmp /var/tmp /run /dev/shm")
    assert "clone" not in names.content
    marker = "resolver-test-marker"
    made = run(sandbox, f"touch /tmp/{marker} /var/tmp/{marker} /dev/shm/{marker} && echo made")
    assert made.content.strip() == "made"
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        assert not Path(folder, marker).exists()
    assert run(sandbox, "echo $TMPDIR; mktemp; cat /tmp/*marker; tty <&0").exit_code == 0


def test_no_device_leads_out(sandbox: Runtime) -> None:
    """With the local runtime, programs look for devices of the machine: only harmless ones
    exist."""
    devices = set(run(sandbox, "ls /dev").content.split())
    assert devices <= {
        "null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd", "stdin",
        "stdout", "stderr",
    }  # fmt: skip
    assert run(sandbox, "ls /dev/pts | sort -n | head -1").content.strip() == "0"
    # Or the devices, which belong to another user than that of Resolver, could not be written.
    assert run(sandbox, "stat -c %a /dev").content.strip() == "755"
    assert run(sandbox, "echo x > /dev/null && head -c 4 /dev/urandom | wc -c").exit_code == 0


def test_sockets_and_pipes_of_the_host_that_appear_later_lead_nowhere(
    home: Path, sandbox: Runtime
) -> None:
    """With the local runtime, programs use sockets and pipes that the machine makes later: they
    lead nowhere."""
    path, pipe = home / "later.sock", home / "later.pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            path.chmod(0o777)
            server.listen()
            server.setblocking(False)
            answer = sandbox.execute(
                IPythonRunCell(code=CONNECT.format(path=str(path), pipe=str(pipe)))
            )
            with pytest.raises(BlockingIOError):
                server.accept()
        assert answer.content.split() == ["refused", "refused"], answer.content
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
