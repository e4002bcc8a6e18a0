"""Work on a pull request of ours: its text says what is new, and it is a draft unless verified."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_pulls import UPSTREAM, PullScenario, right

FIX = bash("sed -i 's/a - b/a + b/' calc.py")
SUMMARY = "Make add add\n\n`add` subtracted; it adds now."
MUL = bash("printf '\\ndef mul(a, b):\\n    return a * b\\n' >>calc.py")
MULTIPLIES = finish("Add mul to calc\n\nIt multiplies.")
TEST_CALC = """import unittest, calc
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(calc.add(2, 3), 5)
"""


class OwnScenario(PullScenario):
    """A pull request of ours for the issue."""

    def set_verify(self, verify: bool) -> None:
        """Turn the verification of the following runs on or off; at first it is off."""
        self.line.environment["RESOLVER_VERIFY"] = str(verify).lower()

    def opened(self, *answers: Answer) -> Issue:
        self.endpoint.script(FIX, *answers, finish(SUMMARY))
        right(self.action(self.github.event_issue_comment(self.mention())))
        self.github.advance(5)
        return self.pulls()[-1]

    def asked(self, pull: Issue, *answers: Answer, text: str = "@agent also add mul()") -> str:
        self.endpoint.script(MUL, *answers, MULTIPLIES)
        right(self.ask(text, on=pull))
        return self.own_comments(pull)[-1]

    def continue_run(self, *answers: Answer) -> str:
        """The comment of `continue` on the issue."""
        self.github.advance(5)
        self.endpoint.script(*answers, finish("Make add add\n\nMore of it."))
        right(self.action(self.github.event_issue_comment(self.mention(text="@agent continue"))))
        return self.bot_comments()[-1]


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[OwnScenario]:
    made = OwnScenario(github, command_line, model_endpoint)
    github.commit(UPSTREAM, "main", {"test_calc.py": TEST_CALC})
    yield made


def is_draft(pull: Issue) -> bool:
    assert pull.pull is not None
    return pull.pull.draft


def reviewers(pull: Issue) -> set[str]:
    assert pull.pull is not None
    return {reviewer.login for reviewer in pull.pull.reviewers}


def test_the_text_and_the_draft_status_follow_the_verification_of_each_run(
    scenario: OwnScenario,
) -> None:
    """A whole run, because what verification shows decides through all stages what is written."""
    pull = scenario.opened()
    assert is_draft(pull) and not reviewers(pull) and "✓" not in pull.body
    scenario.set_verify(True)
    scenario.asked(pull)
    assert not is_draft(pull) and reviewers(pull) == {"mona"}
    assert "It multiplies." in pull.body and "not verified:" not in pull.body
    scenario.set_verify(False)
    scenario.github.advance(5)
    scenario.github.fail_next("PATCH", r"/pulls/\d+$", 422)
    scenario.endpoint.script(bash("echo 1 > one.txt"), finish("Add one\n\nThere is one."))
    right(scenario.ask("@agent and one", on=pull))
    comment = scenario.own_comments(pull)[-1]
    assert "Resolver pushed the commit" in comment and "could not update the text of" in comment
    assert "**The newest commit is not verified:** verification is disabled" in comment
