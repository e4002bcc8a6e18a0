"""MCP servers as they are published, from npm."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.parts.npm import install_packages

PACKAGES = Path(__file__).parent / "mcp_packages"


@dataclass(frozen=True)
class PublishedServers:
    """node: the program. modules: folder of the installed packages."""

    node: str
    modules: Path

    def script(self, package: str) -> str:
        """The main script of an official server, like "everything"."""
        return str(self.modules / f"@modelcontextprotocol/server-{package}/dist/index.js")


@pytest.fixture(scope="session")
def published_servers() -> PublishedServers:
    """The servers, installed on first use."""
    installed = install_packages(PACKAGES, "mcp")
    return PublishedServers(installed.node, installed.modules)
