"""Makes tasks of the fixes that can be tasks: their tests fail without the fix and pass with it.

No model is used. The tests of a fix are executed in sandboxes with the image and the set-up that
the task's container will have: on the commit before the fix, and on the fix itself.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.controller.control import Control
from resolver.errors import SandboxError, UsageError
from resolver.evaluation.history import FixFiles, PastFix
from resolver.evaluation.task_folder import HistoryTask, write_task
from resolver.git.workspace import Workspace
from resolver.models.verification import ProjectCheck, TreeName
from resolver.runs.check_sandboxes import CheckSandboxes
from resolver.runs.wiring.sandbox import RunHost
from resolver.runtime.environment.dependencies import dependency_kind
from resolver.runtime.environment.environment import setup_script
from resolver.runtime.environment.plan import find_setup
from resolver.verification.runner import CheckExecutor
from resolver.verification.runners import narrow_to_files
from resolver.verification.selection import select_checks
from resolver.verification.trees import build_trees

REPETITIONS = 3
"""Number of executions on one tree that must have the same result."""

MAX_CHECKS_PER_FIX = 3

MAX_FAILURES = 3
"""Number of candidates that may fail for one cause while none is usable."""

MAX_DETAIL_CHARACTERS = 1_000

RejectionCause = Literal[
    "tests_only",
    "no_text",
    "changed_environment",
    "passes_without_fix",
    "flaky",
    "no_checks",
    "fails_with_fix",
    "time_limit",
    "sandbox",
]
"""Why a fix can't be a task; prompts/eval/_cause.txt.j2 explains each."""

CAUSES_OF_ENVIRONMENT: frozenset[RejectionCause] = frozenset(
    {"no_checks", "fails_with_fix", "time_limit", "sandbox"}
)
"""Causes that are likely to be the same for each fix of the repository."""


@dataclass(frozen=True)
class Rejection:
    """Why a fix can't be a task. detail: what failed. next_step: what to do about it."""

    cause: RejectionCause
    detail: str | None = None
    next_step: str | None = None


@dataclass(frozen=True)
class Candidate:
    """A fix that was examined. rejection: None if it is a task."""

    fix: PastFix
    rejection: Rejection | None


OpenTree = Callable[[TreeName], AbstractContextManager[CheckExecutor]]
"""Opens a sandbox with "head", which is the fix, or "base_with_tests"."""


@dataclass(frozen=True)
class TaskMaker:
    """Makes tasks of the fixes of one repository.

    owner: first part of the names of tasks. repository: its clone, with the whole history.
    image: the image of the sandboxes, by a name that others can pull. suite: folder of the tasks.
    """

    settings: Settings
    host: RunHost
    owner: str
    repository: Workspace
    image: str
    suite: Path

    def make(self, fixes: Iterable[tuple[PastFix, FixFiles]]) -> Iterator[Candidate]:
        """Yield each fix when it was examined, and its task is written if it is usable.

        Tasks that the suite has already are kept. Raises SandboxError if the first candidates all
        fail for one cause that is not theirs.
        """
        failures = Counter[RejectionCause]()
        has_task = False
        for fix, files in fixes:
            try:
                rejection = self._make_task(fix, files)
            except (SandboxError, UsageError) as error:
                rejection = Rejection("sandbox", error.what, error.next_step)
            yield Candidate(fix, rejection)
            has_task = has_task or rejection is None
            if rejection is None or has_task or rejection.cause not in CAUSES_OF_ENVIRONMENT:
                continue
            failures[rejection.cause] += 1
            if failures[rejection.cause] == MAX_FAILURES:
                raise _no_candidate_works(rejection)

    def _make_task(self, fix: PastFix, files: FixFiles) -> Rejection | None:
        if (self.suite / fix.name).is_dir():
            return None
        if not files.other:
            return Rejection("tests_only")
        if not fix.text:
            return Rejection("no_text")
        base = Workspace(self.repository.folder, self.repository.source, fix.base, "main")
        if _changes_environment(base, fix, files):
            return Rejection("changed_environment")
        check = self._find_check(base, fix, files)
        if isinstance(check, Rejection):
            return check
        plan = find_setup(base.read, self.settings.setup)
        task = HistoryTask(
            name=f"{self.owner}/{fix.name}",
            fix=fix,
            files=files,
            check=check,
            seconds=self._time_limit(check),
            image=self.image,
            setup=setup_script(plan) if plan else None,
        )
        write_task(self.suite / fix.name, task, self.repository)
        return None

    def _find_check(
        self, base: Workspace, fix: PastFix, files: FixFiles
    ) -> ProjectCheck | Rejection:
        settings = self.settings
        selection = select_checks(settings.project_checks, base, files.changed, fix.commit)
        checks: list[ProjectCheck] = []
        for check in selection.checks[:MAX_CHECKS_PER_FIX]:
            # The whole check shows more of what a change breaks. Where it fails even with the fix,
            # the hidden tests alone may still pass.
            narrowed = narrow_to_files(check, tuple(files.tests))
            checks += [check, narrowed] if narrowed else [check]
        if not checks:
            return Rejection("no_checks")
        trees = build_trees(base, base.tree(fix.commit))
        commits: dict[TreeName, str] = {
            "base_with_tests": trees.commits["base_with_tests"],
            "head": fix.commit,
        }
        run = f"eval-{fix.commit[:12]}"
        sandboxes = CheckSandboxes(settings, self.host, run, base, commits, Control())
        if sandboxes.unprepared is not None:
            return Rejection("changed_environment")
        return find_telling_check(sandboxes.open, [(c, self._time_limit(c)) for c in checks])

    def _time_limit(self, check: ProjectCheck) -> float:
        return check.timeout_seconds or self.settings.verification_seconds


def find_telling_check(
    open_tree: OpenTree, checks: Sequence[tuple[ProjectCheck, float]]
) -> ProjectCheck | Rejection:
    """Return the first check that fails without the fix and passes with it, each time.

    checks: the checks to try, with their time limits; there is at least one. If none is right, the
    result is the rejection of the first.
    """
    rejections: list[Rejection] = []
    with open_tree("head") as fixed, open_tree("base_with_tests") as broken:
        for check, seconds in checks:
            rejection = _examine(fixed, broken, check, seconds)
            if rejection is None:
                return check
            rejections.append(rejection)
    return rejections[0]


def _examine(
    fixed: CheckExecutor, broken: CheckExecutor, check: ProjectCheck, seconds: float
) -> Rejection | None:
    with_fix = fixed.execute(check, seconds)
    if with_fix.exit_code is None:
        return Rejection("time_limit", check.command)
    if with_fix.exit_code != 0:
        return Rejection("fails_with_fix", f"{check.command}\n{with_fix.output}")
    without_fix = broken.execute(check, seconds)
    if without_fix.exit_code is None:
        return Rejection("time_limit", check.command)
    if without_fix.exit_code == 0:
        return Rejection("passes_without_fix")
    for _ in range(1, REPETITIONS):
        if fixed.execute(check, seconds).exit_code != 0:
            return Rejection("flaky")
        if broken.execute(check, seconds).exit_code in {0, None}:
            return Rejection("flaky")
    return None


def _no_candidate_works(rejection: Rejection) -> SandboxError:
    values = {"cause": rejection.cause, "detail": (rejection.detail or "")[-MAX_DETAIL_CHARACTERS:]}
    what = render("eval/stopped.txt.j2", count=MAX_FAILURES, **values).strip()
    next_step = rejection.next_step or render("eval/next_step.txt.j2", **values).strip()
    return SandboxError(what, next_step)


def _changes_environment(base: Workspace, fix: PastFix, files: FixFiles) -> bool:
    """Return True if the fix needs dependencies or a set-up that the container doesn't have."""
    after = partial(base.read, commit=fix.commit)
    if find_setup(base.read) != find_setup(after):
        return True
    return any(dependency_kind(path, base.read, after) for path in files.changed)


def owner_name(folder: Path) -> str:
    """Return the first part of the names of a repository's tasks: Harbor allows few characters."""
    return re.sub(r"^[^a-zA-Z0-9]+|[^a-zA-Z0-9._-]+", "", folder.name) or "history"
