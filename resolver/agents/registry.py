"""Registry of agents by name: the built-in ones, and those that a repository defines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Literal

from resolver.agents.base import Agent, DummyAgent
from resolver.agents.codeact import CodeActAgent, DefinedAgent
from resolver.agents.definitions import NOTHING, AgentDefinition, AvailableTools, Definitions
from resolver.agents.readonly import (
    READ_ONLY,
    REVIEWER,
    BrowsingAgent,
    LocAgent,
    ReadOnlyAgent,
    ReviewerAgent,
    VisualBrowsingAgent,
)
from resolver.agents.tools import DelegateAgent, did_you_mean
from resolver.errors import UsageError
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect

CODE_ACT = "CodeActAgent"

SHOWN = 120
"""Maximum length of a definition's description in the prompts of other agents, in characters."""


@dataclass(frozen=True)
class BuiltIn:
    """A built-in agent.

    make: creates the agent.
    description: one line about the agent, for agents that may delegate to it and people who may
    call it by name; "" hides it from both.
    note: additional advice for agents that may delegate to it.
    callable: whether a person can call it by name.
    answers: as the agent of a run, its result is its final message, and its changes to files are
    discarded.
    needs: the part of `AvailableTools` that it can't work without.
    """

    make: Callable[[Model, Dialect, AvailableTools], Agent]
    description: str = ""
    note: str = ""
    callable: bool = True
    answers: bool = False
    needs: Literal["", "browser", "index"] = ""


def make_agent(
    name: str,
    model: Model,
    dialect: Literal["auto", "tools", "tags"],
    offer: AvailableTools = NOTHING,
) -> Agent:
    """Return the agent with that name. Raises UsageError that lists the known agents.

    dialect: "auto" means native tool calls if the model supports them.
    """
    chosen = choose_dialect(model, dialect)
    if offer.delegates:
        offer = replace(offer, colleagues=delegate_agents(offer))
    definition = Definitions(offer.definitions).find(name)
    if definition is not None:
        return DefinedAgent(definition, model, chosen, offer)
    require_agent(name, offer.definitions)
    return AGENTS[name].make(model, chosen, offer)


def require_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> None:
    """Raise UsageError that lists the known agents if there is no agent with that name."""
    known = (*AGENTS, *(each.name for each in definitions))
    if name not in known:
        raise UsageError(
            f"there is no agent {name!r}{did_you_mean(name, known)}",
            f"the agents are: {', '.join(known)}",
        )


def is_answering_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> bool:
    """Return True if the result of the agent is its final message and no change."""
    definition = Definitions(definitions).find(name)
    if definition is not None:
        return definition.read_only
    return name in AGENTS and AGENTS[name].answers


def has_own_work(name: str) -> bool:
    """Return True if the agent always does the same kind of work, whatever the task says."""
    return name not in {CODE_ACT, READ_ONLY, REVIEWER}


def model_of(name: str, definitions: tuple[AgentDefinition, ...]) -> str:
    """Return the model that the agent's definition asks for, or "" if it asks for none."""
    definition = Definitions(definitions).find(name)
    return definition.model if definition else ""


def delegate_agents(offer: AvailableTools) -> tuple[DelegateAgent, ...]:
    """Return the agents that can be delegated to in a run with these tools.

    They are the same for all agents of a run.
    """
    there = {"": True, "browser": offer.browser, "index": offer.index}
    return (
        *(
            DelegateAgent(name, f"{built.description}{built.note and '; '}{built.note}")
            for name, built in AGENTS.items()
            if built.description and there[built.needs]
        ),
        *(DelegateAgent(each.name, _described(each)) for each in offer.definitions),
    )


def _described(definition: AgentDefinition) -> str:
    words = shorten(definition.description, SHOWN, placeholder="…")
    return f"{words.rstrip('.')}; its edits are refused" if definition.read_only else words


def choose_dialect(model: Model, wanted: Literal["auto", "tools", "tags"]) -> Dialect:
    """Return the dialect to use with this model."""
    if wanted == "auto":
        return "tools" if model.supports_tools else "tags"
    return wanted


def _code_act(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:
    memory = ConversationMemory(dialect, sees_images=model.supports_vision)
    return CodeActAgent(model, memory, dialect, offer)


def _browsing(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:
    _need_browser(offer)
    return BrowsingAgent(model, dialect)


def _visual(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:
    _need_browser(offer)
    return VisualBrowsingAgent(model, dialect)


def _need_browser(offer: AvailableTools) -> None:
    if not offer.browser:
        raise UsageError(
            "the sandbox has no browser, so a browsing agent could do nothing",
            "use an image with chromium (see docs/browser.md), or another agent",
        )


def _read_only(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:
    return ReadOnlyAgent(model, dialect, offer.threads)


def _reviewer(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:  # noqa: ARG001
    return ReviewerAgent(model, dialect)


def _loc(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:
    if not offer.index:
        raise UsageError("this run has no index of the code", "use another agent")
    return LocAgent(model, dialect, offer.lines_of)


def _dummy(model: Model, dialect: Dialect, offer: AvailableTools) -> Agent:  # noqa: ARG001
    return DummyAgent()


AGENTS: dict[str, BuiltIn] = {
    CODE_ACT: BuiltIn(
        _code_act, "reads, runs, edits and tests code", "for an independent part of the work"
    ),
    READ_ONLY: BuiltIn(
        _read_only,
        "answers a question about the code",
        "its edits are refused",
        answers=True,
    ),
    REVIEWER: BuiltIn(
        _reviewer,
        "reviews a change critically and reports what is wrong with it, by file and line",
        "say which change, as `git diff` shows it",
        callable=False,  # people start it with the word "review" on a pull request
        answers=True,
    ),
    "LocAgent": BuiltIn(
        _loc,
        "finds the places that have to change; reports paths, lines and why",
        "by an index of the repository as it was when the work began: worth it where grep would "
        "find too much",
        answers=True,
        needs="index",
    ),
    "BrowsingAgent": BuiltIn(
        _browsing,
        "uses web pages by their accessibility tree, and reports what it saw",
        answers=True,
        needs="browser",
    ),
    "VisualBrowsingAgent": BuiltIn(
        _visual,
        "the same with pictures of the pages, for how they look",
        answers=True,
        needs="browser",
    ),
    "DummyAgent": BuiltIn(_dummy),
}
