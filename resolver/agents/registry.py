"""The agents by name: those of the product in one explicit table, and those that a repository
brings.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Literal

from resolver.agents.available_tools import NOTHING, AvailableTools
from resolver.agents.base import Agent
from resolver.agents.browsing import BrowsingAgent, VisualBrowsingAgent
from resolver.agents.codeact import CodeActAgent
from resolver.agents.defined import DefinedAgent
from resolver.agents.definitions import AgentDefinition, Definitions
from resolver.agents.dummy import DummyAgent
from resolver.agents.loc import LocAgent
from resolver.agents.readonly import READ_ONLY, ReadOnlyAgent
from resolver.agents.reviewer import REVIEWER, ReviewerAgent
from resolver.agents.tool_calls import did_you_mean
from resolver.agents.tools import DelegateAgent
from resolver.errors import UsageError
from resolver.llm.base import Model
from resolver.memory.conversation import ConversationMemory, Dialect

CODE_ACT = "CodeActAgent"

SHOWN = 120
"""Characters of a definition's description that each agent is told which may hand work on."""


@dataclass(frozen=True)
class BuiltIn:
    """An agent of the product.

    description: one line for who may hand work to it or call it by its name; "" keeps it from
    both. note: what else an agent should know that hands work to it. callable: whether a person
    calls it by its name. answers: as the run's own agent it says something, and nothing that it
    changed is kept. needs: what of an Offer it can't do without.
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
    """The agent of that name. Raises UsageError that lists the known ones.

    dialect: "auto" takes native tool calls where the model has them.
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
    """Raise UsageError that lists the known agents, unless there is one of that name."""
    known = (*AGENTS, *(each.name for each in definitions))
    if name not in known:
        raise UsageError(
            f"there is no agent {name!r}{did_you_mean(name, known)}",
            f"the agents are: {', '.join(known)}",
        )


def is_answering_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> bool:
    """Whether the run of an agent says something and publishes no change."""
    definition = Definitions(definitions).find(name)
    if definition is not None:
        return definition.read_only
    return name in AGENTS and AGENTS[name].answers


def has_own_work(name: str) -> bool:
    """Whether an agent does one thing, whatever it is called on, and not what a task asks for."""
    return name not in {CODE_ACT, READ_ONLY, REVIEWER}


def model_of(name: str, definitions: tuple[AgentDefinition, ...]) -> str:
    """The model that the agent's definition asks for; "" where it has none, or asks for none."""
    definition = Definitions(definitions).find(name)
    return definition.model if definition else ""


def delegate_agents(offer: AvailableTools) -> tuple[DelegateAgent, ...]:
    """Whom an agent with this offer may hand work to; the same in the whole run."""
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
    """How this model acts."""
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
    return DummyAgent()  # it asks no model


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
        callable=False,  # a review is asked for by that word, on a pull request
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
