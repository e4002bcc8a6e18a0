"""A pull request as a colleague would write it, from the request to what people see of it."""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scene

CHECK = bash("python3 -m unittest -q")
TEST = """import unittest, calc
class T(unittest.TestCase):
    def test_add(self): self.assertEqual(calc.add(2, 2), 4)
"""
SETTINGS = """
base_branch: develop
reviewers: [codeowners, requester]
pull_request_labels: [agent-made]
signed_commits: true
"""
TEMPLATE = """<!-- Read CONTRIBUTING first. -->
## What and why

## Testing

- [ ] All tests pass
"""
HISTORY = ["fix(calc): a", "feat(calc): b", "docs: c", "fix(calc): d", "chore: e"]


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scene]:
    made = Scene(github, command_line, model_endpoint)
    for number, subject in enumerate(HISTORY):
        files = {"CHANGES": str(number), "test_calc.py": TEST}
        github.commit(REPOSITORY, "main", files, subject)
    return made


def test_the_pull_request_follows_the_house_rules(scene: Scene) -> None:
    github, repository = scene.github, scene.repository
    develop = github.commit(REPOSITORY, "develop", {"only-here.txt": "1\n"}, "chore: begin")
    files = {
        ".github/resolver.yml": SETTINGS,
        ".github/PULL_REQUEST_TEMPLATE.md": TEMPLATE,
        ".github/CODEOWNERS": "*.py @ann\n",
    }
    github.commit(REPOSITORY, "main", files, "chore: say how we work")
    github.grant("ann", REPOSITORY, "write")
    bot = github.token_for("agent[bot]", REPOSITORY)
    scene.line.environment |= {
        "GITHUB_TOKEN": bot, "RESOLVER_BOT_LOGIN": "agent[bot]", "RESOLVER_DRAFT": "never",
    }  # fmt: skip
    scene.endpoint.script(bash("cat only-here.txt"), FIX, CHECK, finish(SUMMARY))
    done = scene.action(github.event_issue_comment(scene.mention()))
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scene.pulls()
    assert pull.title == "fix(calc): make add add"
    assert pull.pull.base == "develop" and not pull.pull.draft
    assert {each.login for each in pull.pull.reviewers} == {"ann", "mona"}
    assert pull.labels == ["agent-made"]
    assert "## What and why\n\n`add` subtracted; it adds now." in pull.body
    assert "- [ ] All tests pass" in pull.body and "CONTRIBUTING" not in pull.body
    outcome = done.outcome
    tip = repository.git.tip(outcome["branch"])
    facts = repository.git.facts(tip)
    assert outcome["commit"] == tip and outcome["base"] == develop
    assert facts.tree == outcome["tree"] and facts.parents == (develop,)
    assert facts.message.startswith("fix(calc): make add add\n\n`add` subtracted; it adds now.\n")
    assert f"Fixes #{scene.issue.number}\n" in facts.message
    assert facts.author.name == "agent[bot]" and facts.committer.name == "GitHub"
    assert "Co-authored-by: mona <" in facts.message


def test_without_verification_it_is_a_draft_that_nobody_is_asked_about(scene: Scene) -> None:
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scene.pulls()
    assert pull.pull.draft and not pull.pull.reviewers
    assert "**Not verified:** verification is disabled in the settings" in pull.body


def test_a_rule_that_forbids_signed_commits_is_told_and_they_can_be_published_later(
    scene: Scene,
) -> None:
    scene.line.environment["RESOLVER_SIGNED_COMMITS"] = "true"
    rule = "Repository rule violations found: Cannot create ref due to creations being restricted."
    scene.github.fail_next("POST", "/git/refs$", 422, body={"message": rule})
    scene.endpoint.script(FIX, CHECK, finish(SUMMARY))
    done = scene.resolve()
    assert done.exit_code == 1
    [comment] = scene.bot_comments()
    assert "rule" in comment and "Rulesets" in comment and not scene.branches()
    again = scene.line.call("publish", str(done.output))
    assert again.exit_code == 0, again.stderr
    [pull] = scene.pulls()
    assert scene.repository.git.tip(pull.pull.head)
    told = scene.bot_comments()[0]
    assert "did not sign them" in told, "a person's token"


def test_a_base_branch_that_is_not_there_is_told(scene: Scene) -> None:
    settings = {".github/resolver.yml": "base_branch: nowhere\n"}
    scene.github.commit(REPOSITORY, "main", settings, "chore: set")
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert done.exit_code == 1
    [comment] = scene.bot_comments()
    assert "there is no branch nowhere" in comment and "base_branch" in comment


def test_going_on_reads_the_settings_of_the_default_branch_and_of_no_other(scene: Scene) -> None:
    scene.line.environment["RESOLVER_BASE_BRANCH"] = "develop"
    files = {".github/resolver.yml": "pull_request_labels: [of-develop]\n"}
    scene.github.commit(REPOSITORY, "develop", files, "chore: begin")
    scene.endpoint.script(bash("echo looked"))
    limit = scene.action(
        scene.github.event_issue_comment(scene.mention()), **{"INPUT_MAX-ITERATIONS": "1"}
    )
    assert limit.exit_code == 4, limit.stdout
    scene.github.advance(5)
    scene.endpoint.script(FIX, CHECK, finish(SUMMARY))
    again = scene.mention(text="@agent continue +5 iterations")
    done = scene.action(scene.github.event_issue_comment(again))
    assert done.exit_code == 0, done.stdout + done.stderr
    [pull] = scene.pulls()
    assert pull.pull.base == "develop" and pull.labels == []
