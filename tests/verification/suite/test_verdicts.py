"""Verdicts about changes to small projects, whose checks are executed by their own runners."""

from collections import Counter
from pathlib import Path

import pytest

from resolver.events.lifecycle import VerificationCompleted
from resolver.trace.view import evidence_of
from tests.parts.missing import require_program
from tests.verification.suite.changes import CHANGES, SuiteChange
from tests.verification.suite.local_trees import verify_files
from tests.verification.suite.projects import PROJECTS


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for results at the base, which all changes of a project have in common."""
    return tmp_path_factory.mktemp("base-results")


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_gets_the_verdict_that_it_deserves(
    change: SuiteChange, tmp_path: Path, shared: Path
) -> None:
    project = PROJECTS[change.runner]
    if project.needs:
        require_program(*project.needs)
    verified = verify_files(project.check, change.base, change.head, tmp_path, shared)
    assert verified.verdict in change.verdicts, verified
    assert not change.reason or verified.reason == change.reason, verified
    assert not (change.cheats and verified.verdict == "verified")
    assert bool(verified.reproduction) or verified.verdict != "verified"


def test_an_environment_that_lacks_something_is_named_whatever_else_the_change_does(
    tmp_path: Path, shared: Path
) -> None:
    project = PROJECTS["pytest"]
    conftest = {"conftest.py": "import nowhere\n"}
    head = {**project.base, **conftest, **project.code_with(project.fix), "pytest.ini": ""}
    found = verify_files(project.check, {**project.base, **conftest}, head, tmp_path, shared)
    assert found.verdict == "not_verified"
    assert found.lacks is not None
    assert found.lacks.line == "ModuleNotFoundError: No module named 'nowhere'"
    assert found.lacks.remedy == "setup"
    shown = evidence_of(VerificationCompleted(tree="f" * 40, evidence=found.evidence()))
    assert shown[0] == f"Not verified: {found.lacks.text}"
