"""Each ending has its own clear comment, and says what to do next.

Whole runs, because comment, outputs, summary, log and exit code of each ending have to agree.
"""

import json

import pytest

from tests.attacks.canaries import files_below, leaks
from tests.parts.model_endpoint import error
from tests.parts.runs import MODEL_KEY, Ended
from tests.runs.scenario import Scenario


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
