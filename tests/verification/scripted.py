"""An executor of checks that answers from a script, and the runner that uses it."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from resolver.errors import SandboxError
from resolver.models.verification import (
    CaseResult,
    CaseStatus,
    CheckExecution,
    ProjectCheck,
    TreeName,
)
from resolver.verification.project_tree import MAX_FILE, ProjectTree
from resolver.verification.runner import CheckExecutor

CHECK = ProjectCheck(
    name="tests",
    command="run-tests",
    narrowed="run-tests {files}",
    runner="pytest",
    report_format="junit",
)
TREES: Mapping[TreeName, str] = {"base": "b" * 40, "base_with_tests": "c" * 40, "head": "d" * 40}


def result(*, exit_code: int | None = None, **tests: CaseStatus) -> CheckExecution:
    """The result of tests with these names, by default with the exit code that fits."""
    failed = any(status in {"failed", "error"} for status in tests.values())
    return CheckExecution(
        exit_code=int(failed) if exit_code is None else exit_code,
        seconds=0.5,
        cases=tuple(
            CaseResult(
                id=f"test_a.py::{name}",
                status=status,
                message="assert 1 == 2" if status == "failed" else "",
                file="test_a.py",
            )
            for name, status in tests.items()
        ),
        output="the end of the output",
    )


CONTROL = "control"
"""Stands for the command that has a test beside the others that must fail."""


def with_control(check: ProjectCheck, execution: CheckExecution) -> CheckExecution:
    """Return the execution with the results of the test files that were written for it."""
    failed = tuple(CaseResult(id=f"{path}::test", status="failed") for path in check.files)
    return execution.model_copy(update={"cases": (*execution.cases, *failed)})


TIMED_OUT = CheckExecution(exit_code=None, seconds=9.0)
"""What an execution that was ended at its time limit gives."""

HardCodedResult = CheckExecution | SandboxError


@dataclass
class ScriptedSandboxes:
    """Answers executions by tree and command, the last answer again and again."""

    answers: Mapping[tuple[TreeName, str], Sequence[HardCodedResult]]
    executed: list[tuple[TreeName, str]] = field(default_factory=list)
    opened: list[TreeName] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    interrupted: threading.Event = field(default_factory=threading.Event)
    reports_failures: Collection[TreeName] = frozenset(TREES)
    on_execute: Callable[[TreeName, str], None] = lambda _, __: None

    @contextmanager
    def open(self, tree: TreeName) -> Iterator[CheckExecutor]:
        self.opened.append(tree)
        yield _Executor(self, tree)


@dataclass
class _Executor:
    sandboxes: ScriptedSandboxes
    tree: TreeName

    def execute(self, check: ProjectCheck, seconds: float) -> CheckExecution:
        made = self.sandboxes
        key = (self.tree, CONTROL if check.files else check.command)
        answers = made.answers[key]
        number = made.executed.count(key)
        made.executed.append(key)
        made.limits.append(seconds)
        made.on_execute(*key)
        answer = answers[min(number, len(answers) - 1)]
        if isinstance(answer, SandboxError):
            raise answer
        return with_control(check, answer) if self.tree in made.reports_failures else answer

    def interrupt(self) -> None:
        self.sandboxes.interrupted.set()


def tree_of(files: Mapping[str, str | bytes]) -> ProjectTree:
    """The tree with these contents by path."""
    contents = {path: t.encode() if isinstance(t, str) else t for path, t in files.items()}

    def read_many(paths: Iterable[str]) -> Mapping[str, bytes]:
        found = {path: contents[path] for path in paths if path in contents}
        return {path: content for path, content in found.items() if len(content) <= MAX_FILE}

    return ProjectTree(tuple(sorted(contents)), read_many)
