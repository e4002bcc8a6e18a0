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
    denied_models,
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
    ("named", "agent"),
    [
        ("", "CodeActAgent"),
        ("own", "own"),
        ("OWN", "own"),
        ("readonlyagent", "ReadOnlyAgent"),
        ("release-notes", "CodeActAgent"),
        ("release_notes", "CodeActAgent"),
    ],
)
def test_a_name_calls_an_agent_and_a_skill_leaves_it_as_it_is(named: str, agent: str) -> None:
    assert choose_agent(trigger(named), "CodeActAgent", definitions("own"), SKILLS) == agent


@pytest.mark.parametrize(
    ("command", "agent"),
    [(Command.QUESTION, "ReadOnlyAgent"), (Command.REVIEW, "ReviewerAgent")],
)
def test_a_question_and_a_review_go_to_who_changes_nothing(command: Command, agent: str) -> None:
    assert choose_agent(trigger(command=command), "CodeActAgent", Definitions()) == agent


@pytest.mark.parametrize("named", ["DummyAgent", "ReviewerAgent", "nobody", "stop", "review"])
def test_a_name_that_is_none_lists_what_there_is(named: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_agent(trigger(named), "CodeActAgent", definitions("own"), SKILLS)
    assert f"/{named}" in caught.value.what
    for name in ("/own", "/release-notes", "/CodeActAgent"):
        assert name in caught.value.next_step
    assert "/DummyAgent" not in caught.value.next_step
    assert "/ReviewerAgent" not in caught.value.next_step


def test_a_name_with_a_mistake_is_answered_with_the_one_that_is_like_it() -> None:
    with pytest.raises(UsageError, match="/relese-notes here; did you mean 'release-notes'"):
        choose_agent(trigger("relese-notes"), "CodeActAgent", definitions("release-notes"))


@pytest.mark.parametrize("model", [None, "openai/large", "openai/small", "x/c"])
def test_an_agent_may_ask_for_what_the_operator_has_named(model: str | None) -> None:
    named = settings(
        RESOLVER_MODEL_OPTIONS="{fallbacks: [openai/small]}",
        RESOLVER_SERVICES="{condenser: x/c}",
    )
    assert is_allowed_model(model, named)


@pytest.mark.parametrize(
    "model", ["openai/huge", "anthropic/large", "large", "openai", "scripted:x/y"]
)
def test_it_may_ask_for_no_other(model: str) -> None:
    assert not is_allowed_model(model, settings())


def test_what_was_denied_is_said_of_those_that_were_used() -> None:
    [own, other] = definitions("own", "other", model="openai/huge").agents
    found = Definitions((own.without_model(), other.without_model()))
    [said] = denied_models(found, {"own", "CodeActAgent"})
    assert f"{FOLDER}own.md" in said and "openai/huge" in said
    assert found.agents[0].model is None
