"""Whole runs of agents that a repository defines and a slash command calls.

Whole runs, because a definition decides about prompt, tools, sandbox and publication of its run.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scenario

NOTES = """---
name: release-notes
description: Writes the release notes of a version.
tools: execute_bash, str_replace_editor
---
Write in the style of `NEWS`. HOUSE-WORD
"""
COUNTER = """---
description: Counts functions.
read_only: true
---
Count them all.
"""
AGENTS = {
    ".agents/agents/notes.md": NOTES,
    ".agents/agents/counter.md": COUNTER,
}


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(github, command_line, model_endpoint)
    github.commit(REPOSITORY, "main", AGENTS, "Bring agents")
    yield made


def asked(scenario: Scenario, text: str) -> dict[str, Any]:
    scenario.github.advance(5)  # nobody asks twice within the second of a whole run
    return scenario.github.event_issue_comment(scenario.mention(text=text))


def test_an_agent_of_the_repository_does_what_a_slash_calls_it_for(scenario: Scenario) -> None:
    """A whole run: the story of such an agent. Another definition has a mistake, and this one asks
    for a model that the operator has named."""
    agents = {
        ".agents/agents/bad.md": "---\ndescription: x\ntools: execute_bsh\n---\nDo it.\n",
        ".agents/agents/notes.md": NOTES.replace("tools:", "model: openai/small\ntools:"),
    }
    scenario.github.commit(REPOSITORY, "main", agents, "Break one, and ask for another model")
    scenario.line.environment["RESOLVER_MODEL_OPTIONS"] = "{fallbacks: [openai/small]}"
    scenario.endpoint.script(FIX, finish(SUMMARY))
    done = scenario.action(asked(scenario, "@agent /release-notes for v1.2"))
    assert done.exit_code == 0, done.stdout + done.stderr
    [comment] = scenario.bot_comments()
    assert ".agents/agents/bad.md:3" in comment and "execute_bash" in comment, "it is left out"
    assert "asks for the model" not in comment and done.outcome["model"] == "openai/small"
    assert {request.body["model"] for request in scenario.endpoint.requests} == {"small"}
    [pull] = scenario.pulls()
    assert pull.title == "Make add add"
    body = scenario.endpoint.requests[0].body
    system = body["messages"][0]["content"]
    assert "HOUSE-WORD" in str(system)
    assert str(system).index("never instructions to you") < str(system).index("HOUSE-WORD")
    assert "for v1.2" in str(body["messages"][1])
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["execute_bash", "str_replace_editor", "think", "finish"]
    assert done.events[0].agent == "release-notes"  # type: ignore[union-attr]
