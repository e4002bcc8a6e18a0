"""The conformance suite of all kinds of sandboxes: each decision in the cheapest that shows it."""

import hashlib
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun, FileEdit, FileRead, FileWrite, IPythonRunCell
from resolver.events.observations import (
    ChangedPaths,
    CmdOutput,
    ErrorObservation,
    FileEditResult,
    FileReadResult,
    FileWriteResult,
    IPythonOutput,
)
from resolver.runtime.base import Machine
from resolver.runtime.client import wrap_file
from resolver.runtime.runtime import Runtime
from tests.parts.processes import act_on_start
from tests.parts.sandboxes import (
    DOCKER_BUSYBOX,
    EVERY_KIND,
    LOCAL,
    git_dir_tar,
    kinds,
    shared_kinds,
)

every_image = pytest.mark.parametrize("sandbox_kind", kinds(*EVERY_KIND))
every_machine = shared_kinds("conformance", LOCAL, DOCKER_BUSYBOX)
"""For what depends on the machine, and not on what is in the image."""

one_sandbox = shared_kinds("conformance", LOCAL)
"""For what depends on neither."""

NewMachine = Callable[..., Machine]


@pytest.fixture
def sandbox(shared_sandbox: Runtime) -> Runtime:
    """One for all tests of a kind."""
    run(shared_sandbox, "unset NAME")
    return shared_sandbox


@pytest.fixture
def own_sandbox(sandbox_kind: str, new_machine: NewMachine) -> Iterator[Runtime]:
    """For a test that ends it or needs it untouched."""
    with Runtime(new_machine(sandbox_kind), command_timeout=30) as runtime:
        yield runtime


def run(sandbox: Runtime, command: str, timeout: float | None = None) -> CmdOutput:
    found = sandbox.execute(CmdRun(command=command, timeout=timeout))
    assert isinstance(found, CmdOutput), found
    return found


@one_sandbox
def test_files_can_be_written_edited_reverted_and_read(sandbox: Runtime) -> None:
    path = f"{sandbox.root}/note.txt"
    made = sandbox.execute(FileWrite(path=path, content="one\ntwo\n"))
    assert isinstance(made, FileWriteResult), made
    edited = sandbox.execute(
        FileEdit(command="str_replace", path=path, old_str="two", new_str="three")
    )
    assert isinstance(edited, FileEditResult), edited
    assert edited.old_hash == made.new_hash
    added = sandbox.execute(FileEdit(command="insert", path=path, insert_line=0, new_str="zero"))
    assert isinstance(added, FileEditResult), added
    assert run(sandbox, "cat note.txt").content.split() == ["zero", "one", "three"]
    undone = sandbox.execute(FileEdit(command="undo_edit", path=path))
    assert isinstance(undone, FileEditResult), undone
    seen = sandbox.execute(FileRead(path=path, view_range=(2, 2)))
    assert isinstance(seen, FileReadResult), seen
    assert "three" in seen.content
    assert "one" not in seen.content


@one_sandbox
def test_correctable_errors_are_error_observations(sandbox: Runtime) -> None:
    mistakes: list[tuple[FileRead | FileEdit | FileWrite, str]] = [
        (FileRead(path="missing"), "view"),
        (FileEdit(command="str_replace", path="missing", old_str="a", new_str="b"), "edit"),
        (FileEdit(command="insert", path="missing"), "edit"),
        (FileWrite(path="/proc/version", content=""), "create"),
    ]
    for action, code in mistakes:
        found = sandbox.execute(action)
        assert isinstance(found, ErrorObservation), (action, found)
        assert found.code == code, action
        assert found.content, action


@every_image
def test_a_shell_a_cell_and_a_repository_work_in_every_image(
    own_sandbox: Runtime, tmp_path: Path
) -> None:
    assert run(own_sandbox, "pwd").content.strip() == own_sandbox.root
    computed = own_sandbox.execute(IPythonRunCell(code="6 * 7"))
    assert isinstance(computed, IPythonOutput) and computed.content == "42"
    assert "not started" not in own_sandbox.isolation and "network" in own_sandbox.isolation
    files = {"a.txt": b"old\n", "name with space": b"\xff\r\n"}
    # so many that several processes write them
    files |= {f"many/{number}": b"%d\n" % number for number in range(300)}
    archive, commit = git_dir_tar(tmp_path / "repository", files)
    found = own_sandbox.checkout(archive, commit, "agent/work")
    assert (found["commit"], found["files"]) == (commit, 302)
    status = run(own_sandbox, "git status --short --branch; cat a.txt").content
    assert status.split() == ["##", "agent/work", "old"]
    assert own_sandbox.export_change(commit)["bundle"] is None
    own_sandbox.report_changes()
    assert run(own_sandbox, "cat a.txt").changed == ChangedPaths()
    changed = ChangedPaths(paths=("a.txt",), count=1, differing=1)
    assert run(own_sandbox, "echo new > a.txt").changed == changed
    change = own_sandbox.export_change(commit)
    assert change["bundle"]
    bundle = tmp_path / "change.bundle"
    own_sandbox.fetch(change["bundle"], bundle, 1_000_000)
    assert bundle.stat().st_size == change["size"]
    listed = subprocess.run(
        ["git", "bundle", "list-heads", str(bundle)], capture_output=True, text=True, check=True
    )
    assert change["commit"] in listed.stdout


@every_machine
def test_only_a_regular_file_within_the_limit_is_fetched(sandbox: Runtime, tmp_path: Path) -> None:
    python = (
        f"import os; os.chdir({sandbox.root!r}); open('file', 'w').write('0123456789');"
        "os.symlink('/etc/passwd', 'link'); os.mkdir('folder'); os.mkfifo('fifo');"
        "open('sparse', 'wb').truncate(1 << 30)"
    )
    sandbox.execute(IPythonRunCell(code=python))
    sandbox.fetch(f"{sandbox.root}/file", tmp_path / "file", 10)
    assert (tmp_path / "file").read_text() == "0123456789"
    for name, limit in (("file", 9), ("link", 99), ("folder", 99), ("fifo", 99), ("sparse", 99)):
        with pytest.raises(SandboxError):
            sandbox.fetch(f"{sandbox.root}/{name}", tmp_path / "other", limit)
    with pytest.raises(SandboxError):
        sandbox.fetch(f"{sandbox.root}/missing", tmp_path / "other", 99)
    assert not (tmp_path / "other").exists()


@every_machine
def test_killing_the_action_server_is_a_clear_error_at_once(own_sandbox: Runtime) -> None:
    with pytest.raises(SandboxError, match="the sandbox was lost") as lost:
        for _ in range(3):
            run(own_sandbox, "kill -9 $PPID; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done")
    assert lost.value.next_step
    with pytest.raises(SandboxError):
        run(own_sandbox, "true")


@every_machine
def test_closing_during_a_command_ends_it(sandbox_kind: str, new_machine: NewMachine) -> None:
    with Runtime(new_machine(sandbox_kind), command_timeout=60) as sandbox:
        sleep = f"sleep 50.25{os.getpid()}"
        act_on_start(sleep, sandbox.close)
        with pytest.raises(SandboxError):
            run(sandbox, sleep)
    sandbox.close()


@every_machine
def test_a_large_archive_goes_in_and_comes_out(sandbox: Runtime, tmp_path: Path) -> None:
    content = random.Random(7).randbytes(11_000_000)
    chunks = (content[at : at + 700_001] for at in range(0, len(content), 700_001))
    sandbox._machine.put_archive(sandbox.root, wrap_file("in.bin", chunks))
    code = "import hashlib; hashlib.sha256(open('in.bin', 'rb').read()).hexdigest()"
    assert hashlib.sha256(content).hexdigest() in sandbox.execute(IPythonRunCell(code=code)).content
    sandbox.fetch(f"{sandbox.root}/in.bin", tmp_path / "out.bin", len(content))
    assert (tmp_path / "out.bin").read_bytes() == content
