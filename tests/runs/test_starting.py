"""Every event that can start work, through the entry point of the Action.

GitHub's payloads, a GitHub over real sockets, and what people see in the end.

Whole jobs, because what is ignored, refused or wrong must leave nothing on GitHub.
`test_job_event.py` and `tests/github/events` have what an event asks for.
"""

from typing import Any

import pytest

from tests.parts.events import Events
from tests.runs.scenario import REPOSITORY, Scenario


@pytest.fixture
def events(scenario: Scenario) -> Events:
    return Events(scenario.github, REPOSITORY)


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("repository_dispatch", {"issue": {"number": 1}}, "`issue` is not an issue number"),
        ("workflow_dispatch", {"issue": "", "instruction": "fix"}, "sets 'instruction'"),
    ],
)
def test_a_dispatch_with_a_mistake_is_an_error_and_costs_nothing(
    scenario: Scenario, events: Events, name: str, given: dict[str, Any], why: str
) -> None:
    scenario.github.add_label(scenario.issue, "agent", "mona")
    made = events.by_hand if name == "workflow_dispatch" else events.by_program
    named = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true"}
    done = scenario.action(made("mona", **given), name, **named)
    assert done.exit_code == 2, done.stdout + done.stderr
    [error] = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert why in error
    assert "leave all inputs empty for a sweep" in error
    assert scenario.outputs() == {"state": "error"}
    assert not scenario.endpoint.requests
    assert not scenario.work_done()
