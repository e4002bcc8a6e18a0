"""`resolver sweep` on the test GitHub, where it starts no run: a dry run, a summary, wrong usage.

test_sweep_rows.py has which issues are started, and test_request_counts.py a whole sweep.
"""

from collections.abc import Iterator

import pytest

from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended

REPOSITORY = "octo/calc"


class Scenario:
    """A repository with a maintainer (`mona`) and our bot's token."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        self.github, self.line, self.endpoint = github, line, endpoint
        github.create_repository(REPOSITORY, {"calc.py": "1\n"})
        for login in ("mona", "resolver-bot"):
            github.add_user(login)
            github.grant(login, REPOSITORY, "write")
        self.token = github.token_for("resolver-bot", REPOSITORY)
        self.summary = line.folder / "summary.md"
        line.environment |= {
            "GITHUB_TOKEN": self.token,
            **github.addresses,
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RESOLVER_PACE": '{"command_interval": 0, "write_interval": 0}',
        }

    def issue(self, title: str, by: str = "mona", body: str = "It is wrong.") -> Issue:
        """A labeled issue, which is a moment older than the next."""
        issue = self.github.create_issue(REPOSITORY, title, body, author="zoe")
        self.github.add_label(issue, "agent", by)
        self.github.advance(2)
        return issue

    def sweep(self, *options: str, **environment: str) -> Ended:
        output = self.line.folder / "swept"
        done = self.line.call("sweep", REPOSITORY, "--output", output, *options, **environment)
        return Ended(done.exit_code, done.stdout, done.stderr, output)


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(github, command_line, model_endpoint)
    yield made
    written = b"".join(p.read_bytes() for p in command_line.folder.rglob("*") if p.is_file())
    assert made.token.encode() not in written, "the token was written to a file"


def test_a_dry_run_changes_nothing(scenario: Scenario) -> None:
    scenario.github.grant("tom", REPOSITORY, "triage")
    first, refused, last = (
        scenario.issue("One"),
        scenario.issue("Two", by="tom"),
        scenario.issue("Three"),
    )
    writes = len(scenario.github.writes())
    done = scenario.sweep("--dry-run", "--max-issues", "1", LLM_MODEL="")
    assert done.exit_code == 0, done.stderr
    assert f"#{first.number}  would start" in done.stdout
    assert f"#{last.number}  not started" in done.stdout
    assert (len(scenario.github.writes()), scenario.endpoint.requests) == (writes, [])
    assert not done.output.exists()
    done = scenario.sweep("--dry-run")
    assert f"#{refused.number}  skipped: tom has no write access" in done.stdout


def test_text_from_outside_stays_in_its_cell_of_the_summary(scenario: Scenario) -> None:
    scenario.issue("a | b ](x) @octo #1 <img src=x> \x1b[31m" + scenario.token)
    done = scenario.sweep("--dry-run")
    assert done.exit_code == 0
    [row] = [line for line in scenario.summary.read_text().splitlines() if line.startswith("| [")]
    assert row.count("|") == 5
    assert "<img" not in row
    assert "`@octo`" in row
    assert scenario.token not in done.stdout + scenario.summary.read_text()


@pytest.mark.parametrize("total", ["0", "nan", "much"])
def test_money_without_bound_is_a_wrong_usage(scenario: Scenario, total: str) -> None:
    assert scenario.sweep("--max-total", total).exit_code == 2
    assert not scenario.github.requests
