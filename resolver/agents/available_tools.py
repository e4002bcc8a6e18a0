"""The tools and services that a run offers to agents, in addition to their basic tools."""

from collections.abc import Callable
from dataclasses import dataclass

from resolver.agents.definitions import AgentDefinition
from resolver.agents.tools import DelegateAgent
from resolver.models.run import McpTool


def _no_file(_: str) -> None:
    return None


@dataclass(frozen=True)
class AvailableTools:
    """What an agent may use in addition to its basic tools. Not every agent uses all of it.

    delegates: the agent may delegate work to other agents.
    browser: the sandbox has a browser.
    index: the host has an index of the code.
    mcp: tools of MCP servers.
    definitions: agents that the repository defines.
    colleagues: agents that can be delegated to; set by the registry.
    recall: there are skills that the agent can ask for.
    remember: notes for later runs are kept.
    lines_of: returns the number of lines of a file at the base commit, None if there is no such
    file; used with the index only.
    threads: labels of the review threads that the run is asked about.
    """

    delegates: bool = False
    browser: bool = False
    index: bool = False
    mcp: tuple[McpTool, ...] = ()
    definitions: tuple[AgentDefinition, ...] = ()
    colleagues: tuple[DelegateAgent, ...] = ()
    recall: bool = False
    remember: bool = False
    lines_of: Callable[[str], int | None] = _no_file
    threads: tuple[str, ...] = ()


NOTHING = AvailableTools()
