"""Tests of instructions and skills: which of them reach the model, when, and why.

Whole runs, because skills come from the clone, from other repositories and from what the agent
touches; those that only look at the first request end there.
"""

import json
from itertools import pairwise

from resolver.events.actions import Recall
from resolver.events.base import Source
from resolver.events.log import Event
from resolver.events.observations import RecallResult
from tests.parts.model_endpoint import tool_calls
from tests.parts.runs import CommandLine, finish
from tests.runs.scenario import FIX, REPOSITORY, SUMMARY, Scenario

TASK = """---
name: release-notes
description: Writes the notes of a release.
type: task
---
TASK-WORD: write notes of what changed.
"""
SKILLS = {
    "AGENTS.md": "HOUSE-WORD: use tabs.",
    "web/AGENTS.md": "WEB-WORD: no frameworks.",
    "web/app/AGENTS.md": "APP-WORD: one file each.",
    "web/app/main.js": "x = 1\n",
    ".agents/skills/react/SKILL.md": "---\ndescription: UI.\ntriggers: [React]\n---\nREACT-WORD",
    ".agents/skills/adding.md": "---\ndescription: Sums.\ntriggers: [subtracts]\n---\nADDING-WORD",
    ".agents/skills/python.md": "---\ndescription: Code.\nglobs: '*.py'\n---\nGLOB-WORD",
    ".openhands/microagents/tasks/notes.md": TASK,
}


def loaded_skills(events: list[Event]) -> dict[str, RecallResult]:
    """Return the skills that the run loaded by itself, by name."""
    asked = {e.id for e in events if isinstance(e, Recall) and e.source is Source.ENVIRONMENT}
    return {e.name: e for e in events if isinstance(e, RecallResult) and e.cause in asked}


def prompts(scenario: Scenario | CommandLine) -> list[str]:
    """The messages of each request."""
    return [json.dumps(request.body["messages"]) for request in scenario.endpoint.requests]


def only_grows(scenario: Scenario) -> None:
    """Each request begins with the one before it, so that providers can cache it."""
    bodies = [request.body for request in scenario.endpoint.requests]
    for before, after in pairwise(bodies):
        earlier, later = before["messages"], after["messages"]
        assert later[: len(earlier)] == earlier, "the beginning of the conversation has changed"
        assert before["tools"] == after["tools"]


def test_the_agent_asks_for_skills_itself(scenario: Scenario) -> None:
    """A whole run: the story of skills, which come when the agent or its work asks for them."""
    scenario.github.commit(REPOSITORY, "main", SKILLS, "Bring skills")
    scenario.endpoint.script(
        tool_calls([("recall", {"query": ""}), ("recall", {"query": "react"})]),
        tool_calls([("recall", {"query": "flaky-tests"}), ("recall", {"query": "zzz"})]),
        FIX,
        finish(SUMMARY),
    )
    done = scenario.resolve()
    assert done.exit_code == 0, done.stderr
    agents = [e for e in done.events if isinstance(e, Recall) and e.source is Source.AGENT]
    answers = {e.cause: e for e in done.events if isinstance(e, RecallResult)}
    listed, react, flaky, nothing = (answers[action.id] for action in agents)
    assert "- react" in listed.content and "- release-notes: Writes the notes" in listed.content
    assert (react.content, react.name) == ("REACT-WORD", "react")
    assert flaky.sources == ("shipped with Resolver: .agents/skills/flaky-tests.md",)
    assert "No skill fits zzz" in nothing.content
    loaded = loaded_skills(done.events)
    assert list(loaded) == ["AGENTS.md", "adding", "the list of skills", "python"]
    assert loaded["adding"].why == "“subtracts” was said"
    assert loaded["python"].why == "calc.py was changed"
    assert "HOUSE-WORD" in prompts(scenario)[0] and "GLOB-WORD" in prompts(scenario)[-1]
    only_grows(scenario)
    tools = [tool["function"]["name"] for tool in scenario.endpoint.requests[0].body["tools"]]
    assert "recall" in tools
    assert "“subtracts” was said" in (done.output / "trace.md").read_text()
