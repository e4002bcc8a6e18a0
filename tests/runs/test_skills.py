"""Tests of instructions and skills: which of them reach the model, when, and why.

Whole runs, because skills come from the clone, from other repositories and from what the agent
touches; those that only look at the first request end there.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from resolver.events.actions import Recall
from resolver.events.base import Source
from resolver.events.log import Event
from resolver.events.observations import RecallResult
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint, tool_call, tool_calls
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.runs.test_github import FILES, FIX, REPOSITORY, SUMMARY, Scenario

TASK = """---
name: release-notes
description: Writes the notes of a release.
type: task
inputs:
  - name: since
    description: the tag before
  - name: style
    default: short
---
TASK-WORD: write ${style} notes since {{ since }}.
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


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    made = Scenario(github, command_line, model_endpoint)
    github.commit(REPOSITORY, "main", SKILLS, "Bring skills")
    yield made


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


def view(path: str) -> Any:
    return tool_call("str_replace_editor", {"command": "view", "path": path})


@pytest.mark.nightly
def test_instructions_and_skills_come_when_they_are_called_for(scenario: Scenario) -> None:
    scenario.mention("zoe", "Did you react to this?")
    scenario.endpoint.script(FIX, view("web/app/main.js"), bash("cat calc.py"), finish(SUMMARY))
    done = scenario.resolve()
    assert done.exit_code == 0, done.stderr
    loaded = loaded_skills(done.events)
    assert list(loaded) == [
        "AGENTS.md", "the list of skills", "adding", "python", "web/AGENTS.md", "web/app/AGENTS.md",
    ]  # fmt: skip
    assert loaded["adding"].why == "“subtracts” was said"
    assert loaded["adding"].sources == (".agents/skills/adding.md",)
    assert loaded["python"].why == "calc.py was changed"
    assert loaded["web/app/AGENTS.md"].why == "web/app/main.js was touched"
    first, second, third, fourth = prompts(scenario)
    assert "HOUSE-WORD" in first and "ADDING-WORD" in first
    assert "GLOB-WORD" not in first and "GLOB-WORD" in second
    assert "APP-WORD" not in second and "APP-WORD" in third
    assert "REACT-WORD" not in fourth and "TASK-WORD" not in fourth
    only_grows(scenario)
    trace = (done.output / "trace.md").read_text()
    assert "AGENTS.md" in trace and "adding" in trace and "“subtracts” was said" in trace


@pytest.mark.nightly
def test_a_task_is_asked_for_by_a_slash_with_its_inputs(scenario: Scenario) -> None:
    bad = {".agents/skills/bad.md": "---\nname: bad\ntriggers: {x: y}\n---\nBAD-WORD subtracts"}
    scenario.github.commit(REPOSITORY, "main", bad, "Break one")
    scenario.endpoint.script(FIX, finish(SUMMARY))
    event = scenario.github.event_issue_comment(
        scenario.mention(text='@agent /release-notes since="v1.2 ${style}"')
    )
    done = scenario.action(event)
    assert done.exit_code == 0, done.stdout + done.stderr
    task = loaded_skills(done.events)["release-notes"]
    assert task.content == "TASK-WORD: write short notes since v1.2 ${style}."
    assert (task.about, task.why) == ("task", "asked for as /release-notes")
    assert "the work to do" in prompts(scenario)[0]
    [comment] = scenario.bot_comments()
    assert ".agents/skills/bad.md:3" in comment and "left out" in comment
    assert "BAD-WORD" not in "".join(prompts(scenario))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "`since` is missing"),
        pytest.param("since=a sinse=b", "no input `sinse`", marks=pytest.mark.nightly),
    ],
)
def test_a_task_without_its_inputs_is_refused_with_all_of_them(
    scenario: Scenario, words: str, said: str
) -> None:
    mention = scenario.mention(text=f"@agent /release-notes {words}")
    done = scenario.action(scenario.github.event_issue_comment(mention))
    assert done.exit_code == 5, done.stdout + done.stderr
    [comment] = scenario.bot_comments()
    for part in (said, "since", "required", "the tag before", "style", "default short"):
        assert part in comment, comment
    assert not scenario.work_done()


@pytest.mark.nightly
def test_a_name_that_is_nothing_is_answered_with_the_tasks_there_are(scenario: Scenario) -> None:
    done = scenario.action(
        scenario.github.event_issue_comment(scenario.mention(text="@agent /release"))
    )
    assert done.exit_code == 2
    assert "/release-notes" in scenario.bot_comments()[0]


def test_the_agent_asks_for_skills_itself(scenario: Scenario) -> None:
    """A whole run: the story of skills, which come when the agent or its work asks for them."""
    scenario.endpoint.script(
        tool_calls([("recall", {"query": ""}), ("recall", {"query": "react"})]),
        tool_calls([("recall", {"query": "tests that are flaky"}), ("recall", {"query": "zzz"})]),
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
    assert list(loaded) == ["AGENTS.md", "the list of skills", "adding", "python"]
    assert loaded["adding"].why == "“subtracts” was said"
    assert loaded["python"].why == "calc.py was changed"
    assert "HOUSE-WORD" in prompts(scenario)[0] and "GLOB-WORD" in prompts(scenario)[-1]
    only_grows(scenario)
    assert "“subtracts” was said" in (done.output / "trace.md").read_text()


@pytest.mark.nightly
def test_skills_of_the_organisation_are_read_and_the_nearest_wins(scenario: Scenario) -> None:
    scenario.github.create_repository(
        "octo/.github",
        {
            ".agents/skills/house.md": "---\ntriggers: [subtracts]\n---\nORG-WORD",
            ".agents/skills/adding.md": "---\ntriggers: [subtracts]\n---\nORG-ADDING",
            "AGENTS.md": "ORG-INSTRUCTIONS",
        },
    )
    scenario.github.create_repository(
        "octo/.agents",
        {"skills/sums/SKILL.md": "---\nname: sums\ntriggers: [subtracts]\n---\nSUMS-WORD"},
    )
    scenario.endpoint.script(finish("There is nothing to do."))
    done = scenario.resolve()
    assert done.exit_code == 3, done.stderr
    loaded = loaded_skills(done.events)
    assert loaded["house"].sources == ("octo/.github: .agents/skills/house.md",)
    assert loaded["sums"].content == "SUMS-WORD"
    assert loaded["adding"].content == "ADDING-WORD"
    assert "ORG-INSTRUCTIONS" not in prompts(scenario)[0]


@pytest.mark.nightly
def test_an_organisations_skills_can_be_turned_off_and_its_absence_is_no_error(
    scenario: Scenario,
) -> None:
    scenario.github.create_repository(
        "octo/.github", {".agents/skills/house.md": "---\ntriggers: [subtracts]\n---\nORG-WORD"}
    )
    scenario.endpoint.script(finish("There is nothing to do."))
    done = scenario.line.call(
        "resolve", scenario.target, RESOLVER_ENABLE_ORGANIZATION_SKILLS="false"
    )
    assert done.exit_code == 3, done.stderr
    assert "ORG-WORD" not in prompts(scenario)[0]
    asked = {r.path for r in scenario.github.requests if "octo/.github" in r.path}
    skills_repository = "/repos/octo/.github"
    assert asked <= {skills_repository, f"{skills_repository}/contents/"}, (
        "for a template, and nothing else"
    )


@pytest.mark.nightly
def test_a_repository_that_the_token_cannot_read_gives_no_skills(scenario: Scenario) -> None:
    scenario.github.create_repository(
        "octo/.github",
        {".agents/skills/house.md": "---\ntriggers: [subtracts]\n---\nORG-WORD"},
        private=True,
    )
    scenario.endpoint.script(finish("There is nothing to do."))
    done = scenario.resolve()
    assert done.exit_code == 3, done.stderr
    assert "ORG-WORD" not in prompts(scenario)[0]


@pytest.mark.parametrize("target_is_private", [False, True])
def test_private_skills_are_for_private_repositories(
    scenario: Scenario, *, target_is_private: bool
) -> None:
    """A whole run, because GitHub decides who may read them, and no stage may show
    them to others."""
    scenario.github.create_repository(
        "octo/.github",
        {".agents/skills/house.md": "---\ntriggers: [subtracts]\n---\nORG-WORD"},
        private=True,
    )
    scenario.github.grant("resolver-bot", "octo/.github", "read")
    scenario.github.repository(REPOSITORY).private = target_is_private
    token = scenario.github.token_for("resolver-bot", REPOSITORY, "octo/.github")
    scenario.endpoint.script(finish("There is nothing to do."))
    done = scenario.line.call("resolve", scenario.target, GITHUB_TOKEN=token)
    assert done.exit_code == 3, done.stderr
    assert ("ORG-WORD" in prompts(scenario)[0]) is target_is_private


EVIL = {
    "AGENTS.md": "EVIL-HOUSE",
    "CLAUDE.md": "EVIL-CLAUDE",
    ".agents/skills/adding.md": "---\ntriggers: [subtracts, fix]\n---\nEVIL-SKILL",
    ".agents/skills/new.md": "---\ntriggers: [subtracts, fix]\n---\nEVIL-NEW",
    "web/AGENTS.md": "EVIL-NESTED",
    "evil/AGENTS.md": "EVIL-FOLDER",
    "calc.py": "def add(a, b):\n    return a - b  # ours\n",
}


def test_nothing_of_a_pull_requests_head_is_used_as_a_skill(scenario: Scenario) -> None:
    """A whole run, because it shows that a fork's files have no say in what the agent is told."""
    github = scenario.github
    github.create_repository("eve/calc", parent=REPOSITORY)
    github.commit("eve/calc", "evil", EVIL, "Bring evil")
    pull = github.create_pull(REPOSITORY, "eve:evil", "It subtracts", author="eve")
    github.advance(5)
    comment = github.add_comment(pull, "@agent review", "mona")
    scenario.endpoint.script(
        bash("cat web/AGENTS.md evil/AGENTS.md AGENTS.md"),
        tool_call("submit_review", {"summary": "It subtracts.", "verification": "read"}),
    )
    done = scenario.action(github.event_issue_comment(comment))
    assert done.exit_code == 0, done.stdout + done.stderr
    loaded = loaded_skills(done.events)
    assert loaded["AGENTS.md"].content == "HOUSE-WORD: use tabs."
    assert loaded["adding"].content == "ADDING-WORD"
    assert loaded["python"].why == "calc.py was changed"
    assert loaded["web/AGENTS.md"].content == "WEB-WORD: no frameworks."
    assert set(loaded) == {"AGENTS.md", "adding", "python", "web/AGENTS.md"}
    assert "EVIL" not in "".join(skill.content for skill in loaded.values())


@pytest.mark.nightly
def test_links_are_not_followed(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("---\ntriggers: [broken]\n---\nLINKED-WORD")
    checkout = make_checkout(tmp_path / "calc", FILES)
    (checkout / ".agents").mkdir()
    (checkout / ".agents/skills").symlink_to(tmp_path)
    (checkout / "AGENTS.md").symlink_to(secret)
    (checkout / "CLAUDE.md").symlink_to("README.md")
    (checkout / ".openhands/skills").mkdir(parents=True)
    (checkout / ".openhands/skills/a.md").symlink_to(secret)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "Link")
    model_endpoint.script(finish("There is nothing to do."))
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 3, done.stderr
    assert loaded_skills(done.events) == {}
    assert "LINKED-WORD" not in "".join(prompts(command_line))


def _without_times(done: Ended) -> list[tuple[str, str, str]]:
    return [(e.name, e.why, e.content) for e in done.events if isinstance(e, RecallResult)]


@pytest.mark.nightly
def test_a_replayed_run_gets_the_same_skills(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", {**FILES, **SKILLS})
    model_endpoint.script(
        tool_call("recall", {"query": "react"}), FIX, view("web/app/main.js"), finish(SUMMARY)
    )
    done = command_line.call_resolve(checkout, issue="# It subtracts\n\nNo sum.")
    assert done.exit_code == 0, done.stderr
    again = command_line.call_resolve(
        checkout, "--model", f"replay:{done.output}/events.jsonl", "--no-publish",
        issue="# It subtracts\n\nNo sum.",
    )  # fmt: skip
    assert again.exit_code == 0, again.stdout + again.stderr
    assert again.outcome.get("divergences", []) == []
    assert _without_times(done) == _without_times(again) != []


@pytest.mark.nightly
def test_a_delegate_gets_the_repositorys_instructions_too(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", {**FILES, **SKILLS})
    model_endpoint.script(
        tool_call("delegate", {"agent": "CodeActAgent", "task": "say why it subtracts"}),
        finish("Because."),
        finish("There is nothing to do."),
    )
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 3, done.stderr
    delegated = prompts(command_line)[1]
    assert "HOUSE-WORD" in delegated and "ADDING-WORD" in delegated
    assert "ADDING-WORD" not in prompts(command_line)[0]
