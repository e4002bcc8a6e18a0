"""What the sandbox on this machine gets to see of the machine's files, asked from inside."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import CmdOutput
from resolver.runs.output import Output
from resolver.runtime.base import SandboxSpec
from resolver.runtime.local import CREDENTIALS, LocalMachine
from resolver.runtime.runtime import Runtime

CANARY = "file-canary-6b5a49382716f5e4d3c2b1a0"


@pytest.fixture
def home() -> Iterator[Path]:
    """A person's home folder, outside of the folders for temporary files."""
    (Path.home() / ".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=Path.home() / ".cache") as folder:
        yield Path(folder)


@pytest.fixture
def sandbox(home: Path) -> Iterator[Runtime]:
    """A sandbox of somebody whose home folder is full of credentials."""
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
    log = home / ".local/state/resolver/20260102-other/events.jsonl"
    clone = home / ".cache/resolver/clones/octo/private.git/HEAD"
    data = home / "data/runs/x/trace.md"
    for file in (log, clone, data):
        file.parent.mkdir(parents=True)
        file.write_text(CANARY)
    environment = {**os.environ, "HOME": str(home), "RESOLVER_DATA_DIR": str(home / "data")}
    environment = {k: v for k, v in environment.items() if not k.startswith("XDG_")}
    with Runtime(LocalMachine(SandboxSpec(image="", run="t"), environment), 30) as sandbox:
        assert run(sandbox, f"grep -rl canary '{home}'").content == ""
    assert log.read_text() == CANARY


def test_a_run_folder_is_its_users_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        folders = [tmp_path / name for name in ("own", "shared")]
        for folder, is_private in zip(folders, (True, False), strict=True):
            Output(folder, private=is_private).close()
    finally:
        os.umask(before)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o755]


def test_files_of_the_machine_are_read_only_and_can_not_be_made_writable(
    home: Path, sandbox: Runtime
) -> None:
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
    devices = set(run(sandbox, "ls /dev").content.split())
    assert devices <= {
        "null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd", "stdin",
        "stdout", "stderr",
    }  # fmt: skip
    assert run(sandbox, "ls /dev/pts | sort -n | head -1").content.strip() == "0"
    assert run(sandbox, "echo x > /dev/null && head -c 4 /dev/urandom | wc -c").exit_code == 0
