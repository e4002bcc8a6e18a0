"""Scores a result of an agent: its code with the hidden tests, executed in a fresh sandbox.

Nothing that the agent did to tests counts. All test files and configurations of test runners are
those of the base commit, and the hidden tests are laid over them. What is left of the change is
code, which runs in the sandbox of the tests and could write any report. The rules of
`resolver.verification.decision` for results that are not trusted apply: each expected test must be
in the report, and a change that touches what stands between the code and the report scores nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from resolver.errors import WorkspaceError
from resolver.evaluation.qualification import passed_tests
from resolver.evaluation.repositories import write_tree_with
from resolver.evaluation.task_format import ExpectedTests
from resolver.git.overlay import apply_patch, write_tree
from resolver.git.tree import TreeChange, TreeEntry, decode_path, read_changes
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.models.test_files import is_test_file
from resolver.models.verification import CheckExecution, ProjectCheck, TamperingFinding
from resolver.runs.verify import changed_texts
from resolver.verification.comparison import case_statuses
from resolver.verification.project_files import is_test_configuration
from resolver.verification.tampering import find_tampering

ScoreCause = Literal[
    "",
    "no_change",
    "tests_failed",
    "tests_broken",
    "tests_missing",
    "tampering",
    "unreliable_report",
    "time_limit",
    "sandbox_error",
    "environment",
    "refused",
    "limit",
    "stuck",
    "stopped",
    "error",
]
"""Why a task is not resolved; "" if it is.

tests_failed: hidden tests fail that the fix makes pass. tests_broken: tests fail that passed
before. tests_missing: expected tests are not in the report. refused: the policy of changes refused
to publish the result. limit, stuck, stopped, error: how a run without a result ended.
"""

MAX_NAMED_TESTS = 50


@dataclass(frozen=True)
class TaskScore:
    """The score of one result. tests: those that the cause is about, at most MAX_NAMED_TESTS."""

    cause: ScoreCause
    tests: tuple[str, ...] = ()
    tampering: tuple[TamperingFinding, ...] = ()
    detail: str = ""

    @property
    def is_resolved(self) -> bool:
        """True if the hidden tests pass and nothing that passed before fails."""
        return not self.cause


@dataclass(frozen=True)
class ScoredTree:
    """The tree whose tests are executed, and what speaks against the change before that.

    code: the agent's tree with the test files of the base commit.
    """

    tree: str
    code: str
    tampering: tuple[TamperingFinding, ...]


def build_scored_tree(
    workspace: Workspace, result: str, hidden: Mapping[str, bytes], solution: bytes
) -> ScoredTree:
    """Return the tree to score for a result, which is a commit or a tree.

    solution: the real fix. Kinds of findings that it has, too, don't speak against the result.
    Raises WorkspaceError.
    """
    git, base = workspace.git, workspace.base
    # The base has no entry for an added file, which removes it.
    restored = (
        TreeEntry(c.path, c.old_mode, c.old_id)
        for c in read_changes(git, base, result)
        if _is_of_tests(c)
    )
    code = write_tree(git, f"{result}^{{tree}}", restored)
    findings = _findings(workspace, code, hidden)
    if findings and solution:
        harmless = {finding.kind for finding in _solution_findings(workspace, hidden, solution)}
        findings = tuple(other for other in findings if other.kind not in harmless)
    return ScoredTree(write_tree_with(git, code, hidden), code, findings)


def score_execution(
    expected: ExpectedTests, check: ProjectCheck, execution: CheckExecution
) -> TaskScore:
    """Return the score that the execution of the hidden tests gives."""
    if execution.exit_code is None:
        return TaskScore("time_limit")
    seen = case_statuses(execution)
    passed = passed_tests(execution, check)
    failing = [name for name in expected.fail_to_pass if name not in passed]
    broken = [name for name in expected.pass_to_pass if name not in passed]
    if names := failing or broken:
        cause: ScoreCause = "tests_failed" if failing else "tests_broken"
        if seen and not any(name in seen for name in names):
            cause = "tests_missing"
        return TaskScore(cause, tuple(names[:MAX_NAMED_TESTS]), detail=execution.output)
    others = [name for name, status in seen.items() if status in {"failed", "error"}]
    if execution.exit_code != 0 or others:
        # The command passes with the real fix, so another result is the work of this change.
        return TaskScore("tests_broken", tuple(others[:MAX_NAMED_TESTS]), detail=execution.output)
    return TaskScore("" if execution.report_complete else "unreliable_report")


def _is_of_tests(change: TreeChange) -> bool:
    path = decode_path(change.path)
    return is_test_file(path) or is_test_configuration(path)


def _findings(
    workspace: Workspace, tree: str, hidden: Mapping[str, bytes]
) -> tuple[TamperingFinding, ...]:
    changed = Patch(base=workspace.base, tree=tree)
    texts = [text for text in changed_texts(workspace, changed) if text[0] not in hidden]
    tests: Sequence[tuple[str, str]] = [
        (path, content.decode("utf-8", "replace")) for path, content in hidden.items()
    ]
    found = find_tampering(texts, tests)
    return tuple(finding for finding in found if finding.kind != "changed_workflow")


def _solution_findings(
    workspace: Workspace, hidden: Mapping[str, bytes], solution: bytes
) -> tuple[TamperingFinding, ...]:
    try:
        tree = apply_patch(workspace.git, workspace.base, solution)
    except WorkspaceError:
        return ()
    return _findings(workspace, tree, hidden)
