"""Verdicts about changes to small projects, whose checks are executed by their own runners."""

from pathlib import Path

import pytest

from tests.verification.suite.changes import CHANGES, SuiteChange
from tests.verification.suite.local_trees import verify_files
from tests.verification.suite.projects import PROJECTS


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for results at the base, which all changes of a project have in common."""
    return tmp_path_factory.mktemp("base-results")


IN_EVERY_RUN = {
    *(f"{runner}: fix with a new test file" for runner in PROJECTS),
    "make: regression whose test is skipped",
    # cheats: the runner, its report, its process, the assertions and the shell
    "pytest: pytest replaced by a module", "pytest: report written by the code at exit",
    "unittest: exit at the end", "node: assertions replaced by the code",
    "make: fake sh earlier in PATH", "npm: runner replaced in the dependencies' folder",
}  # fmt: skip
"""Changes whose checks are executed in each run of the tests. The decisions about all others are rows
of test_decide.py and test_comparison.py; what their runners report is seen at night."""


def at_night(change: SuiteChange) -> list[pytest.MarkDecorator]:
    return [] if str(change) in IN_EVERY_RUN else [pytest.mark.nightly]


@pytest.mark.parametrize(
    "change", [pytest.param(change, marks=at_night(change), id=str(change)) for change in CHANGES]
)
def test_a_change_gets_the_verdict_that_it_deserves(
    change: SuiteChange, tmp_path: Path, shared: Path
) -> None:
    check = PROJECTS[change.runner].check
    verified = verify_files(check, change.base, change.head, tmp_path, shared)
    assert verified.verdict in change.verdicts, verified
    assert not change.reason or verified.reason == change.reason, verified
    assert not (change.cheats and verified.verdict == "verified")
    assert bool(verified.reproduction) or verified.verdict != "verified"


def test_the_numbers_of_the_readme_are_those_of_the_suite() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    cheats = sum(change.cheats for change in CHANGES)
    assert f"**0 of {cheats}** changes that delete, skip, replace or bypass tests" in readme
    assert f"all {len(CHANGES)} changes of the suite" in readme
