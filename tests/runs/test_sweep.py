"""`resolver sweep` on the test GitHub, where it starts no run: a dry run, a summary, wrong usage.

test_sweep_rows.py has which issues are started, and test_request_counts.py a whole sweep.
"""

import pytest

from tests.parts.github_server.state import Issue
from tests.parts.runs import Ended
from tests.runs.scenario import REPOSITORY, Scenario


class SweepScenario(Scenario):
    """A repository whose labeled issues are swept."""

    def labeled(self, title: str, by: str = "mona") -> Issue:
        """A labeled issue, which is a moment older than the next."""
        issue: Issue = self.github.create_issue(REPOSITORY, title, "It is wrong.", author="zoe")
        self.github.add_label(issue, "agent", by)
        self.github.advance(2)
        return issue

    def sweep(self, *options: str, **environment: str) -> Ended:
        pace = {"RESOLVER_PACE": '{"command_interval": 0, "write_interval": 0}'}
        return self.line.call("sweep", REPOSITORY, *options, **pace, **environment)


SCENARIO = SweepScenario


def test_a_dry_run_changes_nothing(scenario: SweepScenario) -> None:
    scenario.github.grant("tom", REPOSITORY, "triage")
    first, refused = scenario.labeled("One"), scenario.labeled("Two", by="tom")
    last = scenario.labeled("Three")
    writes = len(scenario.github.writes())
    output = scenario.line.folder / "swept"
    options = ("--dry-run", "--max-issues", "1", "--output", str(output))
    done = scenario.sweep(*options, LLM_MODEL="")
    assert done.exit_code == 0, done.stderr
    assert f"#{first.number}  would start" in done.stdout
    assert f"#{last.number}  not started" in done.stdout
    assert (len(scenario.github.writes()), scenario.endpoint.requests) == (writes, [])
    assert not output.exists()
    done = scenario.sweep("--dry-run")
    assert f"#{refused.number}  skipped: tom has no write access" in done.stdout


def test_text_from_outside_stays_in_its_cell_of_the_summary(scenario: SweepScenario) -> None:
    scenario.labeled("a | b ](x) @octo #1 <img src=x> \x1b[31m" + scenario.token)
    summary = scenario.line.folder / "summary.md"
    done = scenario.sweep("--dry-run", GITHUB_STEP_SUMMARY=str(summary))
    assert done.exit_code == 0
    [row] = [line for line in summary.read_text().splitlines() if line.startswith("| [")]
    assert row.count("|") == 5 and "<img" not in row and "`@octo`" in row
    assert scenario.token not in done.stdout + summary.read_text()


@pytest.mark.parametrize("total", ["0", "nan", "much"])
def test_money_without_bound_is_a_wrong_usage(scenario: SweepScenario, total: str) -> None:
    assert scenario.sweep("--max-total", total).exit_code == 2
    assert not scenario.github.requests
