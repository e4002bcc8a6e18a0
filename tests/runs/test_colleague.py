"""Whole runs whose pull request reads as a colleague would have written it.

Whole runs, because title and text are made from the repository, the agent's words and the change.
"""

import json
from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scenario

CHECK = bash("python3 -m unittest -q")
TEST = """import unittest, calc
class T(unittest.TestCase):
    def test_add(self): self.assertEqual(calc.add(2, 2), 4)
"""
SETTINGS = """
base_branch: develop
signed_commits: true
"""
TEMPLATE = """<!-- Read CONTRIBUTING first. -->
## What and why

## Testing

- [ ] All tests pass
"""
FILLED_IN = TEMPLATE.replace("why\n", "why\n\n`add` subtracted; it adds now.\n")
HISTORY = ["fix(calc): a", "feat(calc): b", "docs: c", "fix(calc): d", "chore: e"]


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(github, command_line, model_endpoint)
    for number, subject in enumerate(HISTORY):
        files = {"CHANGES": str(number), "test_calc.py": TEST}
        github.commit(REPOSITORY, "main", files, subject)
    return made


def test_the_pull_request_follows_the_house_rules(scenario: Scenario) -> None:
    """A whole run: the story of a house's rules, which the clone, the agent, the commit and GitHub
    each have a part of."""
    github, repository = scenario.github, scenario.repository
    develop = github.commit(REPOSITORY, "develop", {"only-here.txt": "1\n"}, "chore: begin")
    files = {
        ".github/resolver.yml": SETTINGS,
        ".github/PULL_REQUEST_TEMPLATE.md": TEMPLATE,
    }
    github.commit(REPOSITORY, "main", files, "chore: say how we work")
    bot = github.token_for("agent[bot]", REPOSITORY)
    scenario.line.environment |= {
        "GITHUB_TOKEN": bot, "RESOLVER_BOT_LOGIN": "agent[bot]", "RESOLVER_DRAFT": "never",
    }  # fmt: skip
    ended = finish(SUMMARY, pull_request_body=FILLED_IN)
    scenario.endpoint.script(bash("cat only-here.txt"), FIX, CHECK, ended)
    done = scenario.action(github.event_issue_comment(scenario.mention()))
    assert done.exit_code == 0, done.stdout + done.stderr
    prompt = json.dumps(scenario.endpoint.requests[0].body)
    assert "begin commit subjects" in prompt and HISTORY[0] in prompt
    [pull] = scenario.pulls()
    assert pull.title == "Make add add"
    assert pull.pull.base == "develop" and not pull.pull.draft
    assert {reviewer.login for reviewer in pull.pull.reviewers} == {"mona"}
    assert "## What and why\n\n`add` subtracted; it adds now." in pull.body
    assert "- [ ] All tests pass" in pull.body and "CONTRIBUTING" not in pull.body
    outcome = done.outcome
    tip = repository.git.tip(outcome["branch"])
    facts = repository.git.facts(tip)
    assert outcome["commit"] == tip and outcome["base"] == develop
    assert facts.tree == outcome["tree"] and facts.parents == (develop,)
    assert facts.message.startswith("Make add add\n\n`add` subtracted; it adds now.\n")
    assert f"Fixes #{scenario.issue.number}\n" in facts.message
    assert facts.author.name == "agent[bot]" and facts.committer.name == "GitHub"
    assert "Co-authored-by: mona <" in facts.message
