"""Takes a change from the discovery of checks to the verdict, in sandboxes of this machine."""

import secrets
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.models.verification import CheckComparison, CheckExecution, ProjectCheck, Verification
from resolver.verification.comparison import (
    WHOLE_CHECK,
    compare_executions,
    needs_rerun,
    reproductions_to_confirm,
)
from resolver.verification.decision import decide
from resolver.verification.discovery import discover_checks
from resolver.verification.instrumentation import instrument
from resolver.verification.project_files import is_test_file
from resolver.verification.project_tree import ProjectTree
from resolver.verification.reports import excerpt_of_output, read_reports
from resolver.verification.tampering import find_tampering
from tests.verification.suite.local_sandbox import LocalSandbox, read_report_files
from tests.verification.suite.recordings import played, recordings_of
from tests.verification.suite.repository import SuiteRepository, tree_id

SECONDS = 60.0
"""Time limit of one execution of a check."""

REPETITIONS = 3


def verify_repository(repository: SuiteRepository, folder: Path, shared: Path) -> Verification:
    """Return the verdict about a repository's change.

    folder: for the sandboxes. shared: for the results at base, which repositories have in common.
    """
    return _LocalVerification(repository, folder, shared).verify()


@dataclass
class _LocalVerification:
    """Executes the checks of one repository, each tree in a sandbox of its own."""

    repository: SuiteRepository
    folder: Path
    shared: Path
    _sandboxes: dict[str, tuple[LocalSandbox, Callable[[ProjectCheck, str], ProjectCheck]]] = field(
        default_factory=dict
    )

    def verify(self) -> Verification:
        """Return the verdict about the change."""
        made = self.repository
        found = discover_checks(ProjectTree.from_files(made.base))
        changed = {path: (made.base.get(path), text) for path, text in made.change.items()}
        return decide(
            [self._compare(check) for check in found.checks],
            changed_files=tuple(changed),
            omitted=found.omitted,
            tampering=find_tampering((path, old, new) for path, (old, new) in changed.items()),
        )

    def _compare(self, check: ProjectCheck) -> CheckComparison:
        change, trees = self.repository.change, self.repository.trees
        head = [self._execute("head", check)]
        with_tests = [self._execute("base_with_tests", check)] if "base_with_tests" in trees else []
        base = [self._base(check)]
        if ids := needs_rerun(base[0], head[0]):
            assert ids != (WHOLE_CHECK,) or not check.report
            for _ in range(REPETITIONS):
                base.append(self._execute("base", check))
                head.append(self._execute("head", check))
        if with_tests and reproductions_to_confirm(with_tests[0], head[0]):
            with_tests.append(self._execute("base_with_tests", check))
            head.append(self._execute("head", check))
        return compare_executions(
            check,
            "full",
            base=base,
            base_with_tests=with_tests,
            head=head,
            deleted_files=[p for p, text in change.items() if text is None and is_test_file(p)],
        )

    def _base(self, check: ProjectCheck) -> CheckExecution:
        file = self.shared / f"{tree_id({**self.repository.base, '': check.command})}.json"
        if not file.exists():
            file.write_text(self._execute("base", check).model_dump_json())
        return CheckExecution.model_validate_json(file.read_text())

    def _execute(self, tree: str, check: ProjectCheck) -> CheckExecution:
        if tree not in self._sandboxes:
            files = self.repository.trees[tree]
            sandbox = LocalSandbox(self.folder / tree, files, {})
            extend = instrument
            if self.repository.is_recorded:
                executions = recordings_of(self.repository.language)[tree_id(files)]
                played_at = self.folder / tree / "recording"
                extend = played(executions, instrument, sandbox.root, played_at)
            self._sandboxes[tree] = sandbox, extend
        return execute_check(self._sandboxes[tree][0], check, SECONDS, self._sandboxes[tree][1])


def execute_check(
    sandbox: LocalSandbox,
    check: ProjectCheck,
    seconds: float,
    extend: Callable[[ProjectCheck, str], ProjectCheck],
) -> CheckExecution:
    """Execute the check in the root of the sandbox's tree and return its result."""
    reports = f"{sandbox.scratch}/reports-{secrets.token_hex(12)}"
    instrumented = extend(check, reports)
    script = f"{sandbox.scratch}/check.sh"
    lines = ["set -eo pipefail"]
    lines += [f"export {k}={shlex.quote(v)}" for k, v in instrumented.environment.items()]
    sandbox.put_file("check.sh", "\n".join([*lines, instrumented.command, ""]).encode())
    output = f"{sandbox.scratch}/output.txt"
    Path(reports).mkdir()
    done = sandbox.execute(CmdRun(command=f"( . {script} ) >{output} 2>&1", timeout=seconds))
    assert isinstance(done, CmdOutput)
    files = read_report_files(sandbox, instrumented.report)
    text = Path(output).read_text(errors="replace")
    reading = read_reports(instrumented.report_format, files, text, sandbox.root)
    return CheckExecution(
        exit_code=done.exit_code,
        seconds=done.seconds,
        cases=reading.cases,
        output=excerpt_of_output(text, 4_000),
        report_complete=reading.complete and (bool(files) or not instrumented.report),
    )
