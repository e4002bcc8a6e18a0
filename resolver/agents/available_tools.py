"""What an agent may use beside its own tools. Not every agent takes all of it."""

from collections.abc import Callable
from dataclasses import dataclass

from resolver.agents.definitions import AgentDefinition
from resolver.agents.tools import DelegateAgent
from resolver.models.run import McpTool


def _no_file(_: str) -> None:
    return None


@dataclass(frozen=True)
class AvailableTools:
    """delegates: it may hand work to other agents. browser: the sandbox has one. index: the host
    keeps an index of the code. mcp: tools of MCP servers. definitions: the repository's own
    agents. colleagues: whom it may hand work to; the registry fills it in. recall: there are skills
    to ask for. remember: notes for later runs are kept. lines_of: how many lines a file of the
    base has, None when there is no such file; only with the index. threads: names of the
    conversations on lines that the run is asked about.
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
