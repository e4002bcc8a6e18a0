"""Registry of agents by name: the built-in ones, and those that a repository defines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Literal

from resolver.agents.base import Agent
from resolver.agents.codeact import CodeActAgent, DefinedAgent
from resolver.agents.definitions import (
    NO_OPTIONAL_TOOLS,
    AgentDefinition,
    AvailableTools,
    Definitions,
)
from resolver.agents.readonly import (
    READ_ONLY,
    REVIEWER,
    BrowsingAgent,
    LocAgent,
    ReadOnlyAgent,
    ReviewerAgent,
    VisualBrowsingAgent,
)
from resolver.agents.tools.calls import suggest_name
from resolver.agents.tools.registry import DelegateAgent
from resolver.config.documentation import DOCS
from resolver.errors import UsageError
from resolver.llm.base import Model
from resolver.memory.conversation import Dialect

CODE_ACT = "CodeActAgent"

MAX_SHOWN_DESCRIPTION = 120
"""Maximum length of a definition's description in the prompts of other agents, in characters."""


@dataclass(frozen=True)
class BuiltInAgent:
    """A built-in agent.

    make: creates the agent.
    description: one line about the agent, for agents that may delegate to it and people who may
    call it by name.
    note: additional advice for agents that may delegate to it.
    is_callable: whether a person can call it by name.
    is_read_only: as the agent of a run, its result is its final message, and its changes to files
    are discarded.
    needs: the part of `AvailableTools` that it can't work without.
    """

    make: Callable[[Model, Dialect, AvailableTools], Agent]
    description: str
    note: str | None = None
    is_callable: bool = True
    is_read_only: bool = False
    needs: Literal["browser_tools", "index"] | None = None


def make_agent(
    name: str,
    model: Model,
    dialect: Literal["auto", "tools", "tags"],
    available: AvailableTools = NO_OPTIONAL_TOOLS,
) -> Agent:
    """Return the agent with that name.

    Raises UsageError that lists the known agents, or names what the agent needs and the run has
    not.

    dialect: "auto" means native tool calls if the model supports them.
    """
    selected_dialect = choose_dialect(model, dialect)
    if available.delegates:
        available = replace(available, colleagues=delegate_agents(available))
    definition = Definitions(available.definitions).find(name)
    if definition is not None:
        return DefinedAgent(definition, model, selected_dialect, available)
    require_agent(name, available.definitions)
    agent = AGENTS[name]
    if agent.needs and not getattr(available, agent.needs):
        raise UsageError(*_MISSING_PARTS[agent.needs])
    return agent.make(model, selected_dialect, available)


def require_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> None:
    """Raise UsageError that lists the known agents if there is no agent with that name."""
    known = (*AGENTS, *(definition.name for definition in definitions))
    if name not in known:
        raise UsageError(
            f"there is no agent {name!r}{suggest_name(name, known)}",
            f"the agents are: {', '.join(known)}",
        )


def is_answering_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> bool:
    """Return True if the result of the agent is its final message and no change."""
    definition = Definitions(definitions).find(name)
    if definition is not None:
        return definition.read_only
    return name in AGENTS and AGENTS[name].is_read_only


def has_fixed_task(name: str) -> bool:
    """Return True if the agent always does the same kind of work, whatever the task says."""
    return name not in {CODE_ACT, READ_ONLY, REVIEWER}


def find_agent_model(name: str, definitions: tuple[AgentDefinition, ...]) -> str | None:
    """Return the model that the agent's definition asks for, None if it asks for none."""
    definition = Definitions(definitions).find(name)
    return definition.model if definition else None


def delegate_agents(available: AvailableTools) -> tuple[DelegateAgent, ...]:
    """Return the agents that can be delegated to in a run with these tools.

    They are the same for all agents of a run.
    """
    has_browser = bool(available.browser_tools)
    is_available = {None: True, "browser_tools": has_browser, "index": available.index}
    return (
        *(
            DelegateAgent(name, "; ".join(filter(None, (agent.description, agent.note))))
            for name, agent in AGENTS.items()
            if is_available[agent.needs]
        ),
        *(
            DelegateAgent(definition.name, _describe_definition(definition))
            for definition in available.definitions
        ),
    )


def _describe_definition(definition: AgentDefinition) -> str:
    description = shorten(definition.description, MAX_SHOWN_DESCRIPTION, placeholder="…")
    return (
        f"{description.rstrip('.')}; its edits are refused" if definition.read_only else description
    )


def choose_dialect(model: Model, requested: Literal["auto", "tools", "tags"]) -> Dialect:
    """Return the dialect to use with this model."""
    if requested == "auto":
        return "tools" if model.supports_tools else "tags"
    return requested


_MISSING_PARTS = {
    "browser_tools": (
        "this run has no browser, so a browsing agent could do nothing",
        f"set `browser_image` (see {DOCS}/how-to/browser.md), or use another agent",
    ),
    "index": ("this run has no index of the code", "use another agent"),
}
"""Error and next step for each part that an agent needs (`BuiltInAgent.needs`)."""

AGENTS: dict[str, BuiltInAgent] = {
    CODE_ACT: BuiltInAgent(
        CodeActAgent, "reads, runs, edits and tests code", "for an independent part of the work"
    ),
    READ_ONLY: BuiltInAgent(
        ReadOnlyAgent,
        "answers a question about the code",
        "its edits are refused",
        is_read_only=True,
    ),
    REVIEWER: BuiltInAgent(
        ReviewerAgent,
        "reviews a change critically and reports what is wrong with it, by file and line",
        "say which change, as `git diff` shows it",
        is_callable=False,  # people start it with the word "review" on a pull request
        is_read_only=True,
    ),
    "LocAgent": BuiltInAgent(
        LocAgent,
        "finds the places that have to change; reports paths, lines and why",
        "by an index of the repository as it was when the work began: worth it where grep would "
        "find too much",
        is_read_only=True,
        needs="index",
    ),
    "BrowsingAgent": BuiltInAgent(
        BrowsingAgent,
        "uses web pages by their accessibility tree, and reports what it saw",
        is_read_only=True,
        needs="browser_tools",
    ),
    "VisualBrowsingAgent": BuiltInAgent(
        VisualBrowsingAgent,
        "the same with pictures of the pages, for how they look",
        is_read_only=True,
        needs="browser_tools",
    ),
}
