"""What an agent may use beside its own tools. Not every agent takes all of it."""

from dataclasses import dataclass

from resolver.model import McpTool


@dataclass(frozen=True)
class Offer:
    """delegates: it may hand work to other agents. browser: the sandbox has one. index: the host
    keeps an index of the code. mcp: tools of MCP servers.
    """

    delegates: bool = False
    browser: bool = False
    index: bool = False
    mcp: tuple[McpTool, ...] = ()


NOTHING = Offer()
