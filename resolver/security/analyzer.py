"""Analyzers return the security risk of an agent's action. The sandbox is the boundary: a risk
only decides whether a person looks at the action first.
"""

from dataclasses import dataclass
from typing import Protocol

from resolver.events.actions import McpCall, SandboxAction
from resolver.events.base import ActionBase
from resolver.models.approval import SecurityRisk


class SecurityAnalyzer(Protocol):
    """Assesses the risk of actions."""

    def security_risk(self, action: ActionBase) -> SecurityRisk:
        """Return the risk of the action. An error counts as `UNKNOWN`."""
        ...


@dataclass(frozen=True)
class LLMSecurityAnalyzer:
    """Returns the risk that the agent's model stated with the call.

    No model knows what a tool of an MCP server does, so the risk of its calls is unknown.
    """

    def security_risk(self, action: ActionBase) -> SecurityRisk:
        """Return the stated risk, `UNKNOWN` if there is none."""
        match action:
            case SandboxAction(changes_files=False):
                return SecurityRisk.LOW
            case SandboxAction(security_risk=stated):
                return stated or SecurityRisk.UNKNOWN
            case McpCall():
                return SecurityRisk.UNKNOWN
            case _:
                return SecurityRisk.LOW
