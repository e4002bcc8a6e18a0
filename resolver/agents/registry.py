"""Registry of agents by name: the built-in ones, and those that a repository defines."""

from dataclasses import replace
from textwrap import shorten
from typing import Literal

from resolver.agents.base import Agent
from resolver.agents.built_in import BUILT_IN, CODE_ACT, READ_ONLY, REVIEWER
from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import NO_OPTIONAL_TOOLS, AgentDefinition, AvailableTools
from resolver.agents.tools.calls import suggest_name
from resolver.agents.tools.registry import DelegateAgent
from resolver.config.documentation import DOCS
from resolver.errors import UsageError
from resolver.llm.base import Model
from resolver.memory.conversation import Dialect

MAX_SHOWN_DESCRIPTION = 120
"""Maximum length of a definition's description in the prompts of other agents, in characters."""


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
    definition = require_agent(name, available.definitions)
    if definition.needs and not getattr(available, definition.needs):
        raise UsageError(*_MISSING_PARTS[definition.needs])
    return CodeActAgent(model, selected_dialect, available, definition)


def require_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> AgentDefinition:
    """Return the agent with that name. Raises UsageError that lists the known agents if there is
    none."""
    agents = {agent.name: agent for agent in (*BUILT_IN, *definitions)}
    if name not in agents:
        raise UsageError(
            f"there is no agent {name!r}{suggest_name(name, tuple(agents))}",
            f"the agents are: {', '.join(agents)}",
        )
    return agents[name]


def is_answering_agent(name: str, definitions: tuple[AgentDefinition, ...]) -> bool:
    """Return True if the result of the agent is its final message and no change."""
    return any(agent.name == name and agent.read_only for agent in (*definitions, *BUILT_IN))


def has_fixed_task(name: str) -> bool:
    """Return True if the agent always does the same kind of work, whatever the task says."""
    return name not in {agent.name for agent in (CODE_ACT, READ_ONLY, REVIEWER)}


def find_agent_model(name: str, definitions: tuple[AgentDefinition, ...]) -> str | None:
    """Return the model that the agent's definition asks for, None if it asks for none."""
    return next((agent.model for agent in definitions if agent.name == name), None)


def delegate_agents(available: AvailableTools) -> tuple[DelegateAgent, ...]:
    """Return the agents that can be delegated to in a run with these tools.

    They are the same for all agents of a run.
    """
    has_browser = bool(available.browser_tools)
    is_available = {None: True, "browser_tools": has_browser, "index": available.index}
    return tuple(
        DelegateAgent(agent.name, _describe(agent))
        for agent in (*BUILT_IN, *available.definitions)
        if is_available[agent.needs]
    )


def _describe(agent: AgentDefinition) -> str:
    if agent.path is None:
        return "; ".join(filter(None, (agent.description, agent.note)))
    description = shorten(agent.description, MAX_SHOWN_DESCRIPTION, placeholder="…")
    return f"{description.rstrip('.')}; its edits are refused" if agent.read_only else description


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
"""Error and next step for each part that an agent needs (`AgentDefinition.needs`)."""
