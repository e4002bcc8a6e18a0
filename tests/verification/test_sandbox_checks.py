"""Checks in a real sandbox: exit codes, reports, outputs and interruptions."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from resolver.errors import SandboxError
from resolver.models.verification import CheckExecution, ProjectCheck
from resolver.runs.check_sandboxes import SandboxExecutor
from resolver.runtime.base import SandboxSpec
from resolver.runtime.local import LocalMachine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import BASH
from resolver.verification.sandbox_checks import execute_check
from tests.verification.suite.local_sandbox import LocalSandbox

JUNIT = '<testsuite><testcase file="a.py" classname="a" name="test_a"/></testsuite>'


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    machine = LocalMachine(SandboxSpec(image="", run="checks"), {"PATH": os.environ["PATH"]})
    with Runtime(machine, 60.0) as opened:
        yield opened


def execute(runtime: Runtime, command: str, seconds: float = 60.0, **known: Any) -> CheckExecution:
    return execute_check(runtime, ProjectCheck(name="check", command=command, **known), seconds)


def test_a_check_ends_with_its_own_exit_code_and_leaves_the_shell(runtime: Runtime) -> None:
    assert execute(runtime, "export LEAKED=1; exit 3").exit_code == 3
    assert execute(runtime, "false | true\necho unreachable").exit_code == 1
    seen = execute(runtime, 'echo "[$LEAKED] [$GIVEN]"', environment={"GIVEN": "a 'b'"})
    assert (seen.exit_code, seen.output.strip()) == (0, "[] [a 'b']")


def test_a_check_is_ended_at_its_time_limit(runtime: Runtime) -> None:
    assert execute(runtime, "sleep 600", seconds=1.0).exit_code is None
    assert execute(runtime, "echo next").output.strip() == "next"


REPORT: dict[str, Any] = {"report": "out/*.xml", "report_format": "junit"}


def test_only_a_report_of_this_execution_is_read(runtime: Runtime) -> None:
    done = execute(runtime, f"mkdir -p out; echo '{JUNIT}' > out/r.xml", **REPORT)
    assert [case.status for case in done.cases] == ["passed"]
    assert done.report_complete
    missing = execute(runtime, "true", **REPORT)
    assert (missing.cases, missing.report_complete) == ((), False)
    # A link to a file from elsewhere is none.
    linked = execute(runtime, "ln -s /etc/passwd out/r.xml", **REPORT)
    assert (linked.cases, linked.report_complete) == ((), False)


@pytest.fixture
def image_programs(tmp_path: Path) -> Path:
    """A folder with the programs of an image that has bash and `python3` alone."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "ln", "mkdir", "rm", "tail"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    make_program(programs / "python3", "echo the project")
    return programs


def make_program(path: Path, text: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("own", "expected"),
    [("echo own", (0, "own")), (None, (0, "the project")), ("gone", (127, "not found"))],
)
def test_python_is_that_of_the_project(
    image_programs: Path, tmp_path: Path, own: str | None, expected: tuple[int, str]
) -> None:
    if own == "gone":
        (image_programs / "python3").unlink()
    elif own:
        make_program(image_programs / "python", own)
    # In a container, the toolbox is at the end of PATH.
    path = f"{image_programs}:{Path(BASH).parent}"
    sandbox = LocalSandbox(tmp_path / "sandbox", {}, {"PATH": path})
    check = ProjectCheck(name="check", command="python -m unittest")
    done = execute_check(sandbox, check, 60.0)
    assert done.exit_code == expected[0]
    assert done.output.strip().endswith(expected[1])


def test_an_interruption_during_the_set_up_executes_no_check() -> None:
    class Interruptible:
        interrupts = 0

        def interrupt(self) -> None:
            self.interrupts += 1

    sandbox = Interruptible()
    executor = SandboxExecutor(cast("Runtime", sandbox), lambda: executor.interrupt())
    with pytest.raises(SandboxError):
        executor.execute(ProjectCheck(name="check", command="true"), 60.0)
    assert sandbox.interrupts == 1
