"""Tests of the worst that commands can do to their sandbox, in containers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resolver.errors import SandboxError
from resolver.events.actions import CmdRun, IPythonRunCell
from resolver.events.observations import CmdOutput, IPythonOutput
from resolver.runtime.base import Machine
from resolver.runtime.runtime import Runtime
from tests.parts.sandboxes import (
    DOCKER_BUSYBOX,
    DOCKER_PYTHON,
    LOCAL,
    git_dir_tar,
    kinds,
    shared_kinds,
)

pytestmark = pytest.mark.xdist_group("isolation")

in_bare_container = shared_kinds("torture", DOCKER_BUSYBOX)
in_shared_python_container = shared_kinds("torture", DOCKER_PYTHON)
in_python_container = pytest.mark.parametrize("sandbox_kind", kinds(DOCKER_PYTHON))
here_and_there = pytest.mark.parametrize("sandbox_kind", kinds(LOCAL, DOCKER_PYTHON))


def run(sandbox: Runtime, command: str, timeout: float | None = None) -> CmdOutput:
    found = sandbox.execute(CmdRun(command=command, timeout=timeout))
    assert isinstance(found, CmdOutput), found
    return found


def cell(sandbox: Runtime, code: str) -> IPythonOutput:
    found = sandbox.execute(IPythonRunCell(code=code))
    assert isinstance(found, IPythonOutput), found
    return found


@pytest.fixture
def narrow(sandbox_kind: str, new_machine: Callable[..., Machine]) -> Iterator[Runtime]:
    """A sandbox with room for 100 processes."""
    with Runtime(new_machine(sandbox_kind, pids=100), command_timeout=30) as sandbox:
        yield sandbox


@in_python_container
@pytest.mark.parametrize(
    "bomb",
    [
        "b() { b | b & }; b",
        "python3 -c 'import os\nwhile True:\n try: os.fork(); os.setsid()\n except OSError: pass'",
    ],
    ids=["shell", "each in a session of its own"],
)
def test_after_a_fork_bomb_the_sandbox_is_usable(narrow: Runtime, bomb: str) -> None:
    run(narrow, "cd /usr; export KEPT=yes")
    run(narrow, bomb, 2)
    for _ in range(3):
        if "yes /usr" in run(narrow, "(echo $KEPT $PWD)", 10).content:
            break
    else:
        pytest.fail("the shell did not come back")
    assert cell(narrow, "6 * 7").content.startswith("42")


@in_shared_python_container
def test_a_shell_that_takes_all_memory_is_replaced_and_the_agent_informed(
    shared_sandbox: Runtime,
) -> None:
    run(shared_sandbox, "cd /usr; export KEPT=yes")
    found = run(shared_sandbox, "x=$(head -c 900M /dev/zero | tr '\\0' x); echo no", 60)
    assert found.exit_code == 137 and "memory limit" in found.content
    assert run(shared_sandbox, "echo $KEPT $PWD").content == "yes /usr\n"


@pytest.mark.attack
@in_shared_python_container
def test_a_program_that_takes_all_memory_is_killed_and_the_agent_informed(
    shared_sandbox: Runtime,
) -> None:
    """A program uses more memory than allowed: it is ended, and the sandbox survives."""
    run(shared_sandbox, "KEPT=yes")
    found = run(shared_sandbox, "python3 -c 'x = b\"x\" * (900 << 20)'", 60)
    assert found.exit_code == 137 and "memory limit" in found.content
    assert run(shared_sandbox, "echo $KEPT").content == "yes\n"
    assert "memory limit" not in run(shared_sandbox, "false").content


@in_shared_python_container
def test_a_cell_that_takes_all_memory_is_ended_and_the_agent_informed(
    shared_sandbox: Runtime,
) -> None:
    found = cell(shared_sandbox, "x = b'x' * (900 << 20)")
    assert found.error and "died" in found.content and "memory limit" in found.content
    assert cell(shared_sandbox, "6 * 7").content == "42"


@here_and_there
def test_the_disk_limit_holds_for_one_file_and_ends_the_sandbox_for_many(
    sandbox_kind: str, new_machine: Callable[..., Machine]
) -> None:
    with Runtime(new_machine(sandbox_kind, disk=50_000_000), command_timeout=30) as sandbox:
        found = run(sandbox, "head -c 200M /dev/zero > big; echo $?; stat -c %s big; rm big")
        assert found.content.split()[-2:] == ["153", "50000000"]
        assert run(sandbox, "echo usable").content == "usable\n"
        many = "for i in {1..5}; do head -c 40M /dev/zero > f$i; done; sleep 25"
        with pytest.raises(SandboxError, match=r"had written [1-9]\d+ MB, over its limit of 50 MB"):
            run(sandbox, many)


@in_bare_container
def test_unreadable_files_do_not_prevent_the_export(
    shared_sandbox: Runtime, tmp_path: Path
) -> None:
    archive, commit = git_dir_tar(tmp_path / "repository", {"a.txt": b"old\n"})
    shared_sandbox.checkout(archive, commit, "agent/work")
    run(shared_sandbox, "echo new > a.txt; echo x > locked; git init -q inner 2>/dev/null")
    cell(shared_sandbox, "import os; os.chmod('locked', 0)")
    change = shared_sandbox.export_change(commit)
    assert change["bundle"] and set(change["left_out"]) <= {"locked", "inner/"}
    assert "locked" in change["left_out"]
