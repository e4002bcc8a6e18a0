"""Tests of which branches of pull requests are pushed to."""

import pytest

from resolver.config.settings import Settings
from resolver.models.pull_request import PullRequestContext
from resolver.publishing.push_to_pull_request import BranchUnavailable, require_allowed_branch

PULL = PullRequestContext(
    number=2, head="a" * 40, base_branch="release", head_branch="half", default_branch="main"
)
SETTINGS = Settings(base_branch="develop")


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("main", "main is the default branch, and Resolver never pushes there"),
        (
            "develop",
            "develop is the branch that base_branch names, and Resolver never pushes there",
        ),
    ],
)
def test_branches_that_work_is_merged_into_are_not_pushed_to(head: str, reason: str) -> None:
    with pytest.raises(BranchUnavailable) as refused:
        require_allowed_branch(SETTINGS, PULL.model_copy(update={"head_branch": head}))
    assert refused.value.why == reason
    assert refused.value.branch_exists, "a pull request can be opened against it"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"head_branch": "release"},
        {"head_branch": "", "default_branch": ""},
        {"head_branch": "main", "is_fork": True},
        {"head_branch": "develop", "is_fork": True},
    ],
)
def test_other_branches_and_those_of_forks_are(values: dict[str, object]) -> None:
    require_allowed_branch(SETTINGS, PULL.model_copy(update=values))
