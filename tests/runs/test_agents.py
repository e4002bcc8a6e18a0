"""Whole runs of agents that a repository defines and a slash command calls.

Whole runs, because a definition decides about prompt, tools, sandbox and publication of its run.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.events import observations as o
from resolver.events.lifecycle import DelegateEvent, RunStarted
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout
from tests.runs.test_github import FILES, FIX, REPOSITORY, SUMMARY, WATCHED, Scenario

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
    """A whole run: the story of such an agent. Another definition has a mistake, and the model that
    this one asks for is not among those that the operator has named."""
    agents = {
        ".agents/agents/bad.md": "---\ndescription: x\ntools: execute_bsh\n---\nDo it.\n",
        ".agents/agents/notes.md": NOTES.replace("tools:", "model: openai/small\ntools:"),
    }
    scenario.github.commit(REPOSITORY, "main", agents, "Break one, and ask for another model")
    scenario.endpoint.script(FIX, finish(SUMMARY))
    done = scenario.action(asked(scenario, "@agent /release-notes for v1.2"))
    assert done.exit_code == 0, done.stdout + done.stderr
    [comment] = scenario.bot_comments()
    assert ".agents/agents/bad.md:3" in comment and "execute_bash" in comment, "it is left out"
    assert "asks for the model" in comment and done.outcome["model"] == "openai/scripted"
    assert {request.body["model"] for request in scenario.endpoint.requests} == {"scripted"}
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


@pytest.mark.nightly
def test_a_read_only_one_answers_in_a_comment_and_nothing_that_it_did_is_kept(
    scenario: Scenario,
) -> None:
    scenario.endpoint.script(FIX, finish("There is one, `calc.py:1`."))
    done = scenario.action(asked(scenario, "@agent /counter"))
    assert done.exit_code == 0, done.stdout + done.stderr
    [comment] = scenario.bot_comments()
    assert "There is one" in comment and "calc.py#L1" in comment
    assert (scenario.branches(), scenario.pulls(), done.outcome["files"]) == ([], [], [])


@pytest.mark.nightly
def test_an_unknown_name_gets_one_comment_that_lists_what_there_is(scenario: Scenario) -> None:
    event = asked(scenario, "@agent /relese-notes")
    assert [scenario.action(event).exit_code for _ in range(2)] == [2, 2]
    [comment] = scenario.bot_comments()
    assert "did you mean 'release-notes'" in comment
    for name in ("/counter", "/release-notes", "/CodeActAgent", "/ReadOnlyAgent"):
        assert name in comment
    assert "DummyAgent" not in comment
    assert not scenario.work_done()


@pytest.mark.nightly
def test_continuing_after_a_question_continues_the_question(scenario: Scenario) -> None:
    scenario.endpoint.script(bash("grep -n def calc.py"), finish("It is `calc.py:1`."))
    assert scenario.action(asked(scenario, "@agent where is add()?")).exit_code == 0
    body = scenario.endpoint.requests[0].body
    assert "pull request" not in json.dumps(body["messages"])
    assert "Resolve issue" not in json.dumps(body)
    [end] = (t["function"] for t in body["tools"] if t["function"]["name"] == "finish")
    assert set(end["parameters"]["properties"]) == {"message", "task_completed"}
    assert "pull request" not in end["description"]
    scenario.endpoint.script(FIX, finish("Also `calc.py:2`."))
    done = scenario.action(
        asked(scenario, "@agent continue, and the line that subtracts"), **WATCHED
    )
    assert done.exit_code == 0, done.stdout + done.stderr
    assert [e.agent for e in done.events if isinstance(e, RunStarted)] == ["ReadOnlyAgent"]
    assert len(scenario.bot_comments()) == 2
    assert "calc.py#L2" in scenario.bot_comments()[1]
    assert (scenario.branches(), scenario.pulls()) == ([], [])
    request = json.dumps(scenario.endpoint.requests[-1].body)
    assert "the line that subtracts" in request and "pull request" not in request


@pytest.mark.nightly
def test_continuing_after_an_agent_of_the_repository_continues_with_that_agent(
    scenario: Scenario,
) -> None:
    scenario.endpoint.script(finish("There is one."))
    assert scenario.action(asked(scenario, "@agent /counter")).exit_code == 0
    scenario.endpoint.script(finish("And no other."))
    done = scenario.action(asked(scenario, "@agent continue"), **WATCHED)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert [e.agent for e in done.events if isinstance(e, RunStarted)] == ["counter"]
    assert "And no other." in scenario.bot_comments()[1]
    assert scenario.pulls() == []


@pytest.mark.nightly
def test_an_option_names_the_agent_on_the_command_line(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", {**FILES, **AGENTS})
    model_endpoint.script(bash("rm README.md"), finish("There is one."))
    done = command_line.call_resolve(checkout, "--agent", "counter", issue="# How many?")
    assert done.exit_code == 0, done.stderr
    assert done.outcome["message"] == "There is one." and "There is one." in done.stderr
    assert done.outcome["branch"] is None
    assert git(checkout, "branch", "--list", "agent/*") == ""
    refused = command_line.call_resolve(checkout, "--agent", "nobody", issue="# How many?")
    assert refused.exit_code == 2
    assert "the agents are" in refused.stderr and "counter" in refused.stderr
    assert len(model_endpoint.requests) == 2


ENDS = {
    "LocAgent": tool_call(
        "report_places", {"message": "LocAgent", "places": [{"path": "calc.py", "start": 1}]}
    ),
    "ReviewerAgent": tool_call("submit_review", {"summary": "ReviewerAgent"}),
}
KINDS = (
    "CodeActAgent", "ReadOnlyAgent", "LocAgent", "ReviewerAgent", "BrowsingAgent",
    "VisualBrowsingAgent", "release-notes", "counter",
)  # fmt: skip


@pytest.mark.nightly
@pytest.mark.chromium
def test_the_main_agent_hands_work_to_each_kind_of_agent(
    chromium_program: str, command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    assert chromium_program
    checkout = make_checkout(tmp_path / "calc", {**FILES, **AGENTS})
    edit = tool_call(
        "str_replace_editor", {"command": "create", "path": "new.py", "file_text": "x = 1\n"}
    )
    for kind in KINDS:
        handed = tool_call("delegate", {"agent": kind, "task": f"do {kind}"})
        model_endpoint.script(handed, edit, ENDS.get(kind) or finish(kind))
    model_endpoint.script(FIX, finish(SUMMARY))
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 0, done.stderr
    results = [e.content for e in done.events if isinstance(e, o.DelegateResult)]
    assert [r.partition(" ")[0] for r in results] == list(KINDS)
    assert all(" is done." in result for result in results), results
    nested = [e.event for e in done.events if isinstance(e, DelegateEvent)]
    words = [str(e.get("content")) for e in nested]
    refused = [w for w in words if "not one of your tools" in w or "the edit was not made" in w]
    assert len(refused) == len(KINDS) - 2  # the two that may edit
    offered = model_endpoint.requests[0].body["tools"]
    [delegate] = (t["function"] for t in offered if t["function"]["name"] == "delegate")
    assert all(f"- {name}: " in delegate["description"] for name in KINDS)
    own = [r.body for r in model_endpoint.requests if "You resolve an issue" in str(r.body)]
    assert all(body["tools"] == own[0]["tools"] for body in own[:1] + own[-2:])
    assert [f["path"] for f in done.outcome["files"]] == ["calc.py", "new.py"]


def test_an_agents_model_is_asked_where_the_operator_has_named_it(scenario: Scenario) -> None:
    """A whole run, because calls, outcome and comment have to agree."""
    small = {".agents/agents/notes.md": NOTES.replace("tools:", "model: openai/small\ntools:")}
    scenario.github.commit(REPOSITORY, "main", small, "Ask another model")
    scenario.line.environment["RESOLVER_FALLBACK_MODELS"] = "openai/small"
    scenario.endpoint.script(FIX, finish(SUMMARY))
    done = scenario.action(asked(scenario, "@agent /release-notes"))
    assert done.exit_code == 0, done.stdout + done.stderr
    assert {request.body["model"] for request in scenario.endpoint.requests} == {"small"}
    assert "asks for the model" not in "\n".join(scenario.bot_comments())
    assert done.outcome["model"] == "openai/small"


@pytest.mark.nightly
def test_an_interrupted_run_of_such_an_agent_continues_with_it(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run, because the agent is known from the log alone; test_slash_commands.py has which
    agent a request to continue leads to."""
    checkout = make_checkout(tmp_path / "calc", {**FILES, **AGENTS})
    model_endpoint.script(bash("cat calc.py"))  # then the endpoint has nothing more to say
    first = command_line.call_resolve(
        checkout,
        "--agent",
        "counter",
        issue="# How many?",
    )
    assert first.exit_code == 1
    model_endpoint.script(finish("There is one."))
    done = command_line.call("resolve", "--resume", str(first.output))
    assert done.exit_code == 0, done.stderr
    outcome = json.loads((first.output / "outcome.json").read_text())
    assert outcome["message"] == "There is one."
    body = model_endpoint.requests[-1].body
    assert "Count them all." in str(body["messages"][0])
    assert [t["function"]["name"] for t in body["tools"]][:2] == [
        "execute_bash",
        "execute_ipython_cell",
    ]
