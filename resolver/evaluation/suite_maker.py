"""Makes a suite of tasks from fixes of the past: executes their tests, writes what is usable."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from resolver.config.settings import REPOSITORY_FILE, Settings, repository_settings
from resolver.errors import SandboxError, WorkspaceError
from resolver.evaluation.history import FixFiles, PastFix, read_fix_files
from resolver.evaluation.qualification import (
    ExecuteCheck,
    Qualification,
    UnusableReason,
    qualify,
)
from resolver.evaluation.repositories import diff_trees, has_commit, write_tree_with
from resolver.evaluation.task_files import write_history_task
from resolver.evaluation.task_format import (
    CONFIG_FILE,
    HiddenTests,
    TaskConfig,
    TaskIdentity,
    TaskMetadata,
)
from resolver.git.push import Identity, write_commit
from resolver.git.workspace import Workspace
from resolver.models.verification import CheckExecution, ProjectCheck
from resolver.runs.check_sandboxes import CheckSandboxes
from resolver.runs.wiring.sandbox import RunHost
from resolver.verification.runner import TreeName
from resolver.verification.selection import CheckSelection, select_checks

REPORT_FILE = "history.json"
"""File of a suite that lists all fixes that were looked at, with the reasons of the unusable."""

MAX_CHECKS_PER_FIX = 3

_AUTHOR = Identity("Resolver", "resolver@localhost")
_AT = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ExaminedFix:
    """A fix that was looked at. reason: why it can't be a task, "" if it is the task `name`."""

    fix: PastFix
    name: str
    reason: UnusableReason
    detail: str = ""
    fail_to_pass: int = 0
    pass_to_pass: int = 0


def open_trees_in_sandboxes(
    settings: Settings, host: RunHost, workspace: Workspace, commits: Mapping[TreeName, str]
) -> ExecuteCheck | Qualification:
    """Return what executes checks at the commits, each time in a fresh sandbox.

    It is a Qualification with the reason if no environment fits one of them.
    """
    run = f"eval-{commits['head'][:12]}"
    sandboxes = CheckSandboxes(settings, host, run, workspace, commits)
    if (unprepared := sandboxes.unprepared) is not None:
        return Qualification("environment", unprepared.detail)

    def execute(tree: TreeName, check: ProjectCheck) -> CheckExecution:
        with sandboxes.open(tree) as executor:
            return executor.execute(
                check, check.timeout_seconds or settings.timeout_seconds.verification
            )

    return execute


OpenTrees = Callable[
    [Settings, RunHost, Workspace, Mapping[TreeName, str]], ExecuteCheck | Qualification
]
"""See `open_trees_in_sandboxes`."""


@dataclass(frozen=True)
class SuiteMaker:
    """Makes tasks of the fixes of one repository.

    load_settings: returns the settings, given the parsed settings file of the repository.
    repository: its clone, with the whole history. suite: the folder of the tasks.
    origin: name of the repository in the tasks, such as OWNER/NAME.
    open_trees: returns what executes the checks of a fix.
    """

    load_settings: Callable[[Mapping[str, object]], Settings]
    host: RunHost
    repository: Workspace
    suite: Path
    origin: str
    open_trees: OpenTrees = open_trees_in_sandboxes

    def make(
        self, fixes: Iterable[PastFix], report: Callable[[ExaminedFix], None]
    ) -> list[ExaminedFix]:
        """Examine all fixes, write the usable ones, and return what was found about each.

        Tasks that the suite has already are kept, so that a killed call is continued.
        """
        self.suite.mkdir(parents=True, exist_ok=True)
        known = self._read_report()
        found: list[ExaminedFix] = []
        for fix in fixes:
            earlier = known.get(fix.commit)
            examined = earlier if earlier and self._is_complete(earlier) else self._examine(fix)
            found.append(examined)
            report(examined)
            self._write_report(found)
        return found

    def _examine(self, fix: PastFix) -> ExaminedFix:
        try:
            return self._make_task(fix)
        except WorkspaceError as error:
            return ExaminedFix(fix, fix.id, "not_fetched", error.what)
        except SandboxError as error:
            return ExaminedFix(fix, fix.id, "sandbox_error", error.what)

    def _make_task(self, fix: PastFix) -> ExaminedFix:
        git = self.repository.git
        if not fix.base or not has_commit(git, fix.base):
            return ExaminedFix(fix, fix.id, "no_parent")
        if not fix.text.strip():
            return ExaminedFix(fix, fix.id, "no_text")
        files = read_fix_files(git, fix)
        if files.reason:
            return ExaminedFix(fix, fix.id, files.reason)
        qualification = self._qualify(fix, files)
        if qualification.reason or not qualification.check or not qualification.expected:
            return ExaminedFix(fix, fix.id, qualification.reason, qualification.detail[-2_000:])
        expected = qualification.expected
        self._write_task(fix, files, qualification)
        counts = len(expected.fail_to_pass), len(expected.pass_to_pass)
        return ExaminedFix(fix, fix.id, "", "", *counts)

    def _qualify(self, fix: PastFix, files: FixFiles) -> Qualification:
        git = self.repository.git
        workspace = Workspace(
            self.repository.folder, self.repository.source, fix.base, self.repository.branch
        )
        settings = self.load_settings(repository_settings(workspace.read_trusted(REPOSITORY_FILE)))
        with_tests = write_tree_with(git, f"{fix.base}^{{tree}}", files.tests)
        commits: dict[TreeName, str] = {
            "base": fix.base,
            "base_with_tests": _commit(workspace, with_tests),
            "head": _commit(workspace, git.text("rev-parse", f"{fix.commit}^{{tree}}")),
        }
        selection = select_checks(
            settings.checks, workspace, settings.allow_list, files.changed, fix.commit
        )
        checks = list(candidate_checks(selection, files))
        if not checks:
            return Qualification("no_checks")
        execute = self.open_trees(settings, self.host, workspace, commits)
        return execute if isinstance(execute, Qualification) else qualify(execute, checks)

    def _write_task(self, fix: PastFix, files: FixFiles, qualification: Qualification) -> None:
        check, expected = qualification.check, qualification.expected
        assert check is not None and expected is not None
        config = TaskConfig(
            task=TaskIdentity(name=f"{self.origin}/{fix.id}"),
            metadata=TaskMetadata(
                category="history",
                resolver=HiddenTests(
                    command=check.command,
                    files=tuple(files.tests),
                    runner=check.runner,
                    report=check.report,
                    report_format=check.report_format,
                    environment=check.environment,
                    base=fix.base,
                    solved_by=fix.commit,
                    instruction_from=fix.text_from,
                ),
            ),
        )
        code = [path for path in files.changed if path not in files.tests]
        solution = diff_trees(self.repository.git, fix.base, fix.commit, code)
        # Renamed when all of it is written, so that a task is complete or missing.
        made = self.suite / f".{fix.id}.part"
        for folder in (made, self.suite / fix.id):
            shutil.rmtree(folder, ignore_errors=True)
        write_history_task(made, config, fix.text, self.repository, files.tests, expected, solution)
        made.rename(self.suite / fix.id)

    def _is_complete(self, examined: ExaminedFix) -> bool:
        return bool(examined.reason) or (self.suite / examined.name / CONFIG_FILE).is_file()

    def _read_report(self) -> dict[str, ExaminedFix]:
        try:
            rows = json.loads((self.suite / REPORT_FILE).read_bytes())
            found = [ExaminedFix(**{**row, "fix": PastFix(**row["fix"])}) for row in rows]
        except (OSError, ValueError, TypeError, KeyError):
            return {}
        return {examined.fix.commit: examined for examined in found}

    def _write_report(self, found: list[ExaminedFix]) -> None:
        rows = [{**vars(examined), "fix": vars(examined.fix)} for examined in found]
        write_atomically(self.suite / REPORT_FILE, json.dumps(rows, indent=1).encode())


def candidate_checks(selection: CheckSelection, files: FixFiles) -> Iterable[ProjectCheck]:
    """Yield the checks to try, in order: each whole, then only its tests in the hidden files.

    The whole check shows more of what a change breaks. Where it fails even with the fix, the hidden
    tests alone may still pass.
    """
    for check in selection.checks[:MAX_CHECKS_PER_FIX]:
        yield check
        narrowed = selection.in_files(check, tuple(files.tests))
        if narrowed is not None and narrowed.command != check.command:
            yield narrowed


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is complete whenever it exists."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


def _commit(workspace: Workspace, tree: str) -> str:
    """Return a commit of the tree, which is only checked out in sandboxes."""
    return write_commit(workspace.git, workspace.base, tree, "Change", _AUTHOR, _AT, ())
