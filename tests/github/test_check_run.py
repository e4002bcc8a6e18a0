"""Tests of the check run with a verification on the published commit."""

from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.github.comments.report import Report
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Publication
from resolver.models.verification import CaseResult, CheckExecution, Verification
from resolver.publishing.pull_request import publish_verification
from resolver.runs.wiring.sandbox import ForgeTokens, access_of
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import CheckRun

NAME = "octo/demo"
BROKEN = CaseResult(
    id="test_a.py::test_old", status="failed", message="1 != 2", file="test_a.py", line=7
)
ELSEWHERE = CaseResult(id="somewhere", status="failed", message="no place")


def failing() -> Verification:
    check = reports.verification().checks[0]
    head = CheckExecution(exit_code=1, seconds=1.0, cases=(ELSEWHERE, BROKEN))
    broken = check.model_copy(update={"head": head, "broken": (BROKEN.id,), "fixed": ()})
    return Verification(verdict="not_verified", reason="regression", checks=(broken,))


class Scenario:
    """A repository with an App, and a published commit."""

    def __init__(self, github: GitHubServer, **permissions: Any) -> None:
        self.repository = github.create_repository(NAME, {"README.md": "hello\n"})
        app = github.add_app("our-agent", NAME, **permissions)
        settings = load_settings(
            {},
            {
                **github.addresses,
                "RESOLVER_APP_ID": str(app.id),
                "RESOLVER_APP_PRIVATE_KEY": app.private_key,
            },
        )
        source = ForgeTokens(now=github.world.now).source(settings, NAME)
        assert source is not None
        self.forge = GitHubForge(access_of(settings, source), NAME)
        self.commit = github.commit(NAME, "agent/12", {"a.py": "1\n"})

    def publish(self, verification: Verification | None, **publication: Any) -> None:
        report: Report = reports.report(verification=verification, base="a" * 40)
        made = Publication(branch="agent/12", commit=self.commit, **publication)
        publish_verification(made, report, self.forge)

    @property
    def check_runs(self) -> list[CheckRun]:
        found: list[CheckRun] = self.repository.check_runs
        return found


@pytest.mark.parametrize(
    ("verification", "conclusion", "title"),
    [
        (reports.verification(), "success", "Verified"),
        (reports.verification(verdict="checked"), "success", "Checked"),
        (Verification(verdict="no_checks"), "neutral", "Not verified"),
        (failing(), "failure", "Not verified"),
    ],
)
def test_the_published_commit_gets_one_check_run(
    github: GitHubServer, verification: Verification, conclusion: str, title: str
) -> None:
    scenario = Scenario(github)
    scenario.publish(verification)
    scenario.publish(verification)  # a resumed run publishes again
    [run] = scenario.check_runs
    assert (run.name, run.head_sha) == ("Resolver", scenario.commit)
    assert (run.values["conclusion"], run.values["output"]["title"]) == (conclusion, title)


def test_failing_tests_are_annotated_at_known_positions(github: GitHubServer) -> None:
    scenario = Scenario(github)
    scenario.publish(failing())
    [run] = scenario.check_runs
    [note] = run.values["output"]["annotations"]
    assert (note["path"], note["start_line"], note["message"]) == ("test_a.py", 7, "1 != 2")


def test_without_permission_no_check_run_is_created_and_nothing_fails(github: GitHubServer) -> None:
    scenario = Scenario(
        github, permissions={"checks": "read", "contents": "write", "metadata": "read"}
    )
    scenario.publish(failing())
    assert not scenario.check_runs


@pytest.mark.parametrize(
    ("verification", "publication"),
    [
        (None, {}),
        (Verification(verdict="not_verified", reason="disabled"), {}),
        (failing(), {"repeated": True}),
        (failing(), {"how": "patch"}),
        (failing(), {"repository": "fork/demo"}),
    ],
)
def test_only_a_verified_commit_of_this_repository_gets_a_check_run(
    github: GitHubServer, verification: Verification | None, publication: dict[str, Any]
) -> None:
    scenario = Scenario(github)
    scenario.publish(verification, **publication)
    assert not scenario.check_runs
