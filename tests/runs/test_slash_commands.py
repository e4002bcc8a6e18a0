"""Tests of slash commands, of the agent that runs, and of the models that a repository may use."""

from datetime import UTC, datetime

import pytest

from resolver.agents.definitions import FOLDER, Definitions, read_definition
from resolver.config.settings import Settings, load_settings
from resolver.errors import UsageError
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.wiring.agents import (
    SlashCommand,
    choose_agent,
    is_allowed_model,
)


def definitions(*names: str, model: str = "") -> Definitions:
    head = f"model: {model}\n" if model else ""
    data = f"---\ndescription: Does it.\n{head}---\nDo it.\n".encode()
    return Definitions(tuple(read_definition(data, f"{FOLDER}{name}.md") for name in names))


def trigger(named: str = "", command: Command = Command.FIX) -> Trigger:
    return Trigger(
        key="k",
        kind=TriggerKind.ISSUE_COMMENT,
        repository="o/n",
        number=1,
        actor=Actor(login="mona"),
        at=datetime(2026, 1, 2, tzinfo=UTC),
        named=named,
        command=command,
    )


def settings(**more: str) -> Settings:
    return load_settings({}, {"LLM_MODEL": "openai/large"} | more, {})


SKILLS = (
    SlashCommand("release-notes", "Writes them."),
    SlashCommand("review", "Ours."),
    SlashCommand("own", "x"),
)


@pytest.mark.parametrize(
    ("named", "command", "agent"),
    [
        ("", Command.FIX, "CodeActAgent"),
        ("OWN", Command.FIX, "own"),
        ("readonlyagent", Command.FIX, "ReadOnlyAgent"),
        ("release_notes", Command.FIX, "CodeActAgent"),  # a skill leaves the agent as it is
        ("", Command.QUESTION, "ReadOnlyAgent"),
        ("", Command.REVIEW, "ReviewerAgent"),
    ],
)
def test_a_name_or_a_command_chooses_the_agent(named: str, command: Command, agent: str) -> None:
    chosen = choose_agent(trigger(named, command), "CodeActAgent", definitions("own"), SKILLS)
    assert chosen == agent


@pytest.mark.parametrize("named", ["ReviewerAgent", "nobody", "stop", "review"])
def test_a_name_that_is_none_lists_what_there_is(named: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_agent(trigger(named), "CodeActAgent", definitions("own"), SKILLS)
    assert f"/{named}" in caught.value.what
    for name in ("/own", "/release-notes", "/CodeActAgent"):
        assert name in caught.value.next_step
    assert "/ReviewerAgent" not in caught.value.next_step


@pytest.mark.parametrize(
    ("model", "is_allowed"),
    [
        (None, True), ("openai/large", True), ("openai/small", True), ("x/c", True),
        ("openai/huge", False), ("anthropic/large", False), ("large", False),
        ("scripted:x/y", False),
    ],
)  # fmt: skip
def test_an_agent_may_ask_only_for_what_the_operator_has_named(
    model: str | None, is_allowed: bool
) -> None:
    named = settings(
        RESOLVER_MODEL_OPTIONS="{fallbacks: [openai/small]}",
        RESOLVER_SERVICES="{condenser: x/c}",
    )
    assert is_allowed_model(model, named) is is_allowed
