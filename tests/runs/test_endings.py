"""Each ending has its own clear comment, and says what to do next.

Whole runs, because comment, outputs, summary, log and exit code of each ending have to agree.
"""

import json
import re
from typing import Any

import pytest

from tests.attacks.canaries import files_below, leaks
from tests.parts.model_endpoint import Answer, error
from tests.parts.runs import MODEL_KEY, Ended, finish
from tests.runs.scenario import FIX, SUMMARY, Scenario


def ending(body: str) -> str:
    found = re.search(r" ending=(\w+)", body)
    assert found, body
    return found[1]


def asked(scenario: Scenario, **environment: str) -> tuple[Ended, str]:
    """One run for a mention; its one comment."""
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **environment)
    [body] = scenario.bot_comments()
    return done, body


@pytest.mark.attack
def test_a_link_in_the_place_of_the_output_is_reported_in_the_conversation(
    scenario: Scenario,
) -> None:
    """The checkout contains a link where the Action writes: it is not followed."""
    workspace, link = scenario.line.folder / "linked", "resolver-output"
    workspace.mkdir()
    (workspace / link).symlink_to("/tmp")
    mention = scenario.mention()
    (workspace / "event.json").write_text(json.dumps(scenario.github.event_issue_comment(mention)))
    done = scenario.line.call(
        "action",
        GITHUB_EVENT_NAME="issue_comment",
        GITHUB_EVENT_PATH=str(workspace / "event.json"),
        GITHUB_WORKSPACE=str(workspace),
        GITHUB_OUTPUT=str(workspace / "outputs"),
    )
    outputs = (workspace / "outputs").read_text()
    assert done.exit_code == 2
    [body] = scenario.bot_comments()
    assert f"{link} is a link" in body and "Remove resolver-output from the checkout" in body
    assert f"{link} is a link" in done.stdout
    assert "state=error\n" in outputs and "outcome=\n" in outputs
    assert [reaction.content for reaction in mention.reactions] == ["eyes"]
    assert not scenario.endpoint.requests


def test_a_refused_model_key_is_reported_without_the_key(scenario: Scenario) -> None:
    """A whole run, because the key must be in none of the places that a job writes to."""
    scenario.endpoint.script(*[error(401, f"Incorrect API key provided: {MODEL_KEY}")] * 9)
    done, comment = asked(scenario)
    assert done.exit_code == 1, done.stderr
    assert scenario.outputs()["state"] == "error"
    assert "::error title=Resolver::the model endpoint at 127.0.0.1" in done.stdout
    assert "did not accept the key" in comment
    texts = (done.stdout, done.stderr, str(scenario.outputs()), scenario.summary(), comment)
    data = "\n".join(texts).encode() + files_below(done.output.parent)
    assert leaks(data, (MODEL_KEY, scenario.token)) == []


@pytest.mark.attack
def test_a_missing_engine_never_means_less_isolation(scenario: Scenario) -> None:
    """The runner has no Docker engine: the job fails instead of working with less isolation."""
    done, body = asked(scenario, RESOLVER_RUNTIME="docker", DOCKER_HOST="tcp://127.0.0.1:1")
    assert done.exit_code == 1, done.stderr
    assert not scenario.endpoint.requests
    assert "no Docker engine answers at tcp://127.0.0.1:1" in body


def no_writing(scenario: Scenario, status: int, times: int) -> None:
    """From the fix on GitHub takes no comment, so many times."""
    begun: list[int] = []

    def answer(body: dict[str, Any]) -> Answer:
        if not begun:
            begun.append(1)
            scenario.github.fail_next("PATCH", r"/issues/comments/", status, times=times)
            scenario.github.fail_next("POST", r"/issues/\d+/comments", status, times=times)
        return finish(SUMMARY) if len(body["messages"]) > 2 else FIX

    scenario.endpoint.answer_with(answer)


def test_a_final_comment_that_is_never_accepted_is_left_to_the_closing_step(
    scenario: Scenario,
) -> None:
    """Whole runs, because the closing step reads what the run has left."""
    no_writing(scenario, 422, times=999)  # an outage would be waited for
    done, body = asked(
        scenario, RESOLVER_PACE='{"write_interval": 0, "final_comment": 0, "first_wait": 0.05}'
    )
    [pull] = scenario.pulls()
    assert done.exit_code == 1 and ending(body) == "progress"
    assert scenario.outputs()["state"] == "", "so that the job `close` runs"
    assert scenario.outputs()["pull-request-url"].endswith(f"/pull/{pull.number}")
    assert (
        "::error title=Resolver::The result of this run could not be posted on GitHub."
        in done.stdout
    )
    assert f"/pull/{pull.number}" in scenario.summary()
    scenario.github.forget_failures()
    event = scenario.github.event_issue_comment(scenario.issue.comments[0])
    assert scenario.action(event, INPUT_CLOSE="true").exit_code == 0
    [body] = scenario.bot_comments()
    assert ending(body) == "pull_request" and f"Resolver opened [#{pull.number}]" in body
