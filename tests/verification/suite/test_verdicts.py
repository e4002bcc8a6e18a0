"""Verdicts about changes to small repositories, whose checks are executed by their own runners."""

from collections import Counter
from pathlib import Path

import pytest

from tests.verification.suite.orchestration import verify_repository
from tests.verification.suite.repositories import REPOSITORIES
from tests.verification.suite.repository import SuiteRepository


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for results at base, which many repositories have in common."""
    return tmp_path_factory.mktemp("base-results")


@pytest.mark.parametrize("repository", REPOSITORIES, ids=str)
def test_a_change_gets_the_verdict_that_it_deserves(
    repository: SuiteRepository, tmp_path: Path, shared: Path
) -> None:
    verified = verify_repository(repository, tmp_path, shared)
    got = verified.verdict, verified.reason or "-"
    assert got == (repository.verdict, repository.reason or verified.reason or "-"), verified
    assert verified.reproduction or verified.verdict != "verified"
    if repository.name == "test that passes without the fix" and verified.checks[0].head.cases:
        assert verified.proves_nothing


def test_the_suite_has_every_kind_of_change_in_many_languages() -> None:
    assert len(REPOSITORIES) >= 40
    assert len({repository.language.partition(",")[0] for repository in REPOSITORIES}) >= 7
    kinds = Counter(repository.kind for repository in REPOSITORIES)
    assert kinds["fix"] >= 10
    assert kinds["cheat"] >= 20
    assert len({str(repository) for repository in REPOSITORIES}) == len(REPOSITORIES)
