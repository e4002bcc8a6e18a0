"""`resolver eval history OWNER/NAME`: merged pull requests on GitHub become tasks."""

import os
from pathlib import Path

import pytest

from resolver.cli.main import run
from resolver.evaluation.task_format import read_suite
from resolver.github.context.past_issue import PAST_ISSUE_QUERY
from tests.parts.github import GitHubServer
from tests.parts.github_server.graphql_schema import query_problems
from tests.parts.github_server.state import Issue
from tests.parts.published import GRAPHQL_SCHEMA, require

REPOSITORY = "ada/sums"
SETTINGS = """checks:
  - name: tests
    command: for test in tests/*.sh; do sh "$test" || exit 1; done
"""
FILES = {
    ".github/resolver.yml": SETTINGS,
    "add.sh": "echo $(($1 - $2))\n",
    "tests/test_mul.sh": "test 6 = 6\n",
}
FIXED = {"add.sh": "echo $(($1 + $2))\n", "tests/test_add.sh": "test $(sh add.sh 2 3) = 5\n"}


def merge(github: GitHubServer, branch: str, files: dict[str, str], body: str) -> Issue:
    """Open a pull request with these files, and merge it a minute later."""
    github.commit(REPOSITORY, branch, files, f"Change of {branch}")
    pull = github.create_pull(REPOSITORY, branch, branch, body)
    github.advance(60)
    github.merge_pull(pull)
    github.advance(60)
    return pull


@pytest.fixture
def environment(tmp_path: Path, github: GitHubServer) -> dict[str, str]:
    github.create_repository(REPOSITORY, FILES)
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": os.environ["PATH"],
        "GITHUB_TOKEN": github.token_for("ada"),
        "GITHUB_API_URL": github.api_url,
        "GITHUB_GRAPHQL_URL": github.graphql_url,
        "GITHUB_SERVER_URL": github.server_url,
        "RESOLVER_RUNTIME": "local",
    }


def test_merged_pull_requests_with_tests_become_tasks_with_the_issue_as_it_was(
    tmp_path: Path,
    github: GitHubServer,
    environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A whole run, because what GitHub says is checked by executing the tests of the fix."""
    bug = github.create_issue(REPOSITORY, "add subtracts", "add 2 3 is 1.")
    github.advance(60)
    github.edit_issue(bug, body="add 2 3 is -1.<!-- hidden -->")
    github.advance(60)
    merge(github, "add", FIXED, f"Fixes #{bug.number}")
    github.edit_issue(bug, title="Use + in add.sh", body="The answer is a plus sign.")

    docs = github.create_issue(REPOSITORY, "No docs", "There are none.")
    github.advance(60)
    merge(github, "docs", {"README.md": "Docs\n"}, f"Fixes #{docs.number}")
    merge(github, "no-issue", {"add.sh": "echo 5\n", "tests/test_x.sh": "true\n"}, "")
    closed = github.create_issue(REPOSITORY, "Never merged", "It was closed.")
    github.commit(REPOSITORY, "closed", {"tests/test_y.sh": "false\n"}, "x")
    github.create_pull(REPOSITORY, "closed", "x", f"Fixes #{closed.number}").state = "closed"

    suite = tmp_path / "suite"
    assert run(["eval", "history", REPOSITORY, "--suite", str(suite)], environment) == 0
    shown = capsys.readouterr()
    assert "1 of 1 fix can be tasks" in shown.out
    assert "issue-1-" in shown.err and "usable, 1 test" in shown.err
    (task,) = read_suite(suite)
    assert task.instruction == "# add subtracts\n\nadd 2 3 is -1.\n"
    assert task.hidden.files == ("tests/test_add.sh",)
    assert task.hidden.instruction_from == "issue"


def test_the_query_of_a_past_issue_is_valid_by_githubs_schema() -> None:
    assert query_problems(require(GRAPHQL_SCHEMA), PAST_ISSUE_QUERY) == ()
