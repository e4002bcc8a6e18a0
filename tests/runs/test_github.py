"""The main job on GitHub, from the command line and from the Action's events, over real sockets.

Whole runs: the stories that all others vary.
"""

import json
import re
from typing import Any

import pytest

from tests.parts.model_endpoint import Answer
from tests.parts.runs import finish
from tests.parts.waiting import until
from tests.runs.scenario import FIX, REPOSITORY, SELDOM, SUMMARY, Scenario


def test_a_mention_is_seen_at_once_and_answered(scenario: Scenario) -> None:
    """A whole run: the story of a request, from the reaction to the outputs of the job. The agent's
    words are hostile, but the commit mentions nobody, closes no other issue and skips no check."""
    said = "Make add add\n\nFixes #7, as @zoe and octo/other#8 say. [skip ci]\n\nskip-checks: true"
    scenario.endpoint.script(FIX, finish(said))
    scenario.mention("zoe", "It is in calc.py, I think.")
    comment = scenario.mention(text="@agent please fix this, and keep it small")
    done = scenario.action(scenario.github.event_issue_comment(comment), **SELDOM)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert [r.content for r in comment.reactions] == ["eyes"]
    first_write = next(w for w in scenario.github.writes() if w.kind == "rest")
    assert first_write.path.endswith(f"/comments/{comment.id}/reactions")
    prompt = json.dumps(scenario.endpoint.requests[0].body)
    for words in ("2 + 2 gives 0.", "It is in calc.py, I think.", "keep it small"):
        assert words in prompt, words
    [pull] = scenario.pulls()
    assert pull.title == "Make add add"
    for words in (f"Fixes #{scenario.issue.number}\n", "$0.0002", "2 iterations"):
        assert words in pull.body, words
    assert done.outcome["pull_request"]["number"] == pull.number
    tree = f"refs/heads/{done.outcome['branch']}^{{tree}}"
    assert scenario.repository.git.text("rev-parse", tree).strip() == done.outcome["tree"]
    assert scenario.outputs() == {
        "state": "finished",
        "branch": f"agent/issue-{scenario.issue.number}-add-subtracts",
        "pull-request-number": str(pull.number),
        "pull-request-url": f"{scenario.github.server_url}/{REPOSITORY}/pull/{pull.number}",
        "cost": "0.0002",
        "iterations": "2",
        "output": "resolver-output",
        "outcome": "resolver-output/outcome.json",
        "events": "resolver-output/events.jsonl",
    }
    assert "<details>" in scenario.summary()
    [answer] = scenario.bot_comments()
    assert "actions/runs/77" in answer and f"/pull/{pull.number}" in answer
    assert "<details>" in answer and "s/a - b/a + b/" in answer
    message = scenario.repository.git.text(
        "log", "-1", "--format=%an%n%B", f"refs/heads/{done.outcome['branch']}"
    )
    assert message.startswith("resolver-bot\nMake add add\n")
    assert f"Fixes #{scenario.issue.number}\n" in message
    assert f"Resolver-Run: {done.outcome['run']}" in message
    assert re.search(r"Co-authored-by: mona <\d+\+mona@users.noreply.127.0.0.1>", message)
    loud = ("#7", "@zoe", "#8", "[skip ci]", "skip-checks:")
    assert not any(words in message for words in loud), message


@pytest.mark.attack
def test_an_author_without_write_access_gets_no_run(scenario: Scenario) -> None:
    """Somebody without write access asks for work on an issue: refused before anything is
    cloned."""
    scenario.github.add_user("eve")
    scenario.github.grant("eve", REPOSITORY, "triage", association="MEMBER")
    event = scenario.github.event_issue_comment(scenario.mention("eve"))
    done = scenario.action(event)
    assert done.exit_code == 5, done.stdout
    assert not scenario.work_done()
    assert done.outcome["state"] == "refused"
    [comment] = scenario.bot_comments()
    assert "write access" in comment
    assert not [r for r in scenario.github.requests if r.kind == "git"]


NEW_NAME = "octo/renamed"


def test_the_comment_shows_the_work_and_then_the_result_where_the_issue_is_now(
    scenario: Scenario,
) -> None:
    """A whole run, because another thread edits the comment, and the repository is renamed
    meanwhile."""

    def reply(body: dict[str, Any]) -> Answer:
        if any(message["role"] == "tool" for message in body["messages"]):
            return finish(SUMMARY)
        # What the pipeline tells the comment, and what the comment follows of the log.
        until(lambda: "- [x] Clone the repository (at `" in scenario.bot_comments()[-1])
        until(lambda: "- [x] Start the sandbox" in scenario.bot_comments()[-1])
        assert " job=77.1 -->" in scenario.bot_comments()[-1]
        scenario.github.move_repository(REPOSITORY, NEW_NAME)
        return FIX

    scenario.endpoint.answer_with(reply)
    pace = {"RESOLVER_PACE": '{"progress_interval": 1, "write_interval": 0}'}
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **pace)
    assert done.exit_code == 1
    [comment] = scenario.bot_comments()
    assert "ending=progress" not in comment and "new name" in comment
