"""Takes a change from the discovery of checks to the verdict, in sandboxes of this machine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resolver.models.verification import CheckExecution, ProjectCheck, Verification
from resolver.verification.affected_tests import (
    NarrowedCheck,
    affected_check,
    check_of_files,
    unchanged_tests,
)
from resolver.verification.altered_tests import find_altered_tests
from resolver.verification.base_results import BaseResults
from resolver.verification.discovery import discover_checks
from resolver.verification.instrumentation import instrument
from resolver.models.test_files import is_test_file
from resolver.verification.project_tree import ProjectTree
from resolver.verification.runner import CheckExecutor, RunnerOptions, TreeName
from resolver.verification.sandbox_checks import CheckInstrumentation, execute_check
from resolver.verification.selection import CheckSelection, only_tests
from resolver.verification.tampering import find_tampering
from resolver.verification.verify import VerificationRequest, verify_change
from tests.verification.suite.local_sandbox import LocalSandbox
from tests.verification.suite.recordings import played, recordings_of
from tests.verification.suite.repository import SuiteRepository, tree_id

SECONDS = 600.0
"""Time limit of one verification."""


@dataclass(frozen=True)
class _LocalExecutor:
    sandbox: LocalSandbox
    extend: CheckInstrumentation

    def execute(self, check: ProjectCheck, seconds: float) -> CheckExecution:
        return execute_check(self.sandbox, check, seconds, self.extend)

    def interrupt(self) -> None:
        self.sandbox.interrupt()


def verify_repository(repository: SuiteRepository, folder: Path, shared: Path) -> Verification:
    """Return the verdict about a repository's change.

    folder: for the sandboxes. shared: for the results at base, which repositories have in common.
    """
    change, trees = repository.change, repository.trees
    before, after = (ProjectTree.from_files(trees[name]) for name in ("base", "head"))
    found = discover_checks(before)
    tests = [path for path in change if is_test_file(path)]
    renamed = repository.renamed_tests
    recorded = recordings_of(repository.language) if repository.is_recorded else {}

    def affected(check: ProjectCheck, at_base: bool) -> NarrowedCheck | None:
        return affected_check(check, tuple(change), before if at_base else after)

    def in_files(check: ProjectCheck, files: Sequence[str]) -> ProjectCheck | None:
        return check_of_files(check, files, after)

    @contextmanager
    def open_executor(tree: TreeName) -> Iterator[CheckExecutor]:
        files, place = trees[tree], folder / tree
        sandbox = LocalSandbox(place, files, {})
        extend: CheckInstrumentation = instrument
        if recorded:
            executions = recorded[tree_id(files)]
            extend = played(executions, instrument, sandbox.root, place / "recording")
        yield _LocalExecutor(sandbox, extend)

    request = VerificationRequest(
        selection=CheckSelection(found.checks, found.omitted, affected, in_files, only_tests),
        options=RunnerOptions(
            trees={name: tree_id(files) for name, files in trees.items()},
            environment="this machine",
            recorded={},
            record=lambda _: None,
            base_results=BaseResults(shared),
            seconds=SECONDS,
            parallel=False,
        ),
        changed_files=tuple(change),
        changed_tests=tuple(repository.tests),
        altered_tests=find_altered_tests(
            (path, repository.base.get(path), text) for path, text in repository.tests.items()
        ),
        deleted_tests=tuple(path for path in tests if change[path] is None and path not in renamed),
        renamed_tests=renamed,
        tampering=find_tampering(
            ((p, repository.base.get(p), text) for p, text in change.items()),
            unchanged_tests(tuple(change), before),
        ),
    )
    return verify_change(request, open_executor)
