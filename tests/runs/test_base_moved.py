"""A new pull request whose base branch has got commits while the agent worked.

Whole runs, in which the branch moves while the agent works; tests/publishing/test_base_moved.py has
the same settings without an agent.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, Ended, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scenario


class Moving(Scenario):
    """main gets a commit right before the agent's last reply."""

    def run(self, files: dict[str, str], **environment: str) -> Ended:
        def ended(_: dict[str, Any]) -> Answer:
            self.moved = self.github.commit(REPOSITORY, "main", files, "meanwhile", "mona")
            return finish(SUMMARY)

        answers: list[Callable[[dict[str, Any]], Answer]] = [lambda _: FIX, ended]
        self.endpoint.answer_with(lambda body: answers.pop(0)(body))
        event = self.github.event_issue_comment(self.mention())
        self.start = self.tip("main")
        return self.action(event, **environment)

    def tip(self, branch: str) -> str:
        return str(self.repository.git.tip(branch))

    def parents(self) -> list[str]:
        [pull] = self.pulls()
        text = self.repository.git.text("log", "-1", "--format=%P", pull.pull.head)
        return str(text).split()


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Moving:
    return Moving(github, command_line, model_endpoint)


@pytest.mark.nightly
def test_what_was_tested_is_proposed_as_it_is_unless_it_is_set(scenario: Moving) -> None:
    assert scenario.run({"more.py": "x\n"}).exit_code == 0
    assert scenario.parents() == [scenario.start]


@pytest.mark.nightly
def test_the_commit_is_put_on_top_by_setting(scenario: Moving) -> None:
    assert scenario.run({"more.py": "x\n"}, RESOLVER_BASE_MOVED="rebase").exit_code == 0
    assert scenario.parents() == [scenario.moved]
    [pull] = scenario.pulls()
    changed = scenario.repository.git.text("diff", "--name-only", scenario.moved, pull.pull.head)
    assert changed == "calc.py"


@pytest.mark.nightly
def test_what_came_is_merged_in_by_setting(scenario: Moving) -> None:
    assert scenario.run({"more.py": "x\n"}, RESOLVER_BASE_MOVED="merge").exit_code == 0
    first, second = scenario.parents()
    assert scenario.moved in {first, second}


@pytest.mark.nightly
def test_conflicts_are_left_and_reported(scenario: Moving) -> None:
    files = {"calc.py": "def add(a, b):\n    return a ^ b\n"}
    assert scenario.run(files, RESOLVER_BASE_MOVED="rebase").exit_code == 0
    assert scenario.parents() == [scenario.start]
    [pull] = scenario.pulls()
    assert "has new commits since" in pull.body
