"""A repository that is renamed before a run or during it.

Whole runs, because git and the API answer differently under the earlier name.
"""

from typing import Any

from tests.parts.model_endpoint import Answer
from tests.parts.runs import finish
from tests.runs.scenario import FIX, REPOSITORY, SELDOM, SUMMARY, Scenario

NEW_NAME = "octo/renamed"


def test_a_request_under_the_earlier_name_is_answered_where_the_issue_is_now(
    scenario: Scenario,
) -> None:
    event = scenario.github.event_issue_comment(scenario.mention())
    scenario.github.move_repository(REPOSITORY, NEW_NAME)
    done = scenario.action(event, **SELDOM)
    assert done.exit_code == 1 and not scenario.endpoint.requests
    [comment] = scenario.bot_comments()
    assert f"{REPOSITORY} has moved to {NEW_NAME}" in comment and "request there" in comment


def test_the_result_of_a_run_is_written_where_the_issue_is_now(scenario: Scenario) -> None:
    def reply(body: dict[str, Any]) -> Answer:
        if any(message["role"] == "tool" for message in body["messages"]):
            return finish(SUMMARY)
        scenario.github.move_repository(REPOSITORY, NEW_NAME)
        return FIX

    scenario.endpoint.answer_with(reply)
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **SELDOM)
    assert done.exit_code == 1
    [comment] = scenario.bot_comments()
    assert "ending=progress" not in comment and "new name" in comment
