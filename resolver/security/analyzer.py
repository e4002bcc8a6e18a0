"""Returns the security risk of an agent's action. The sandbox is the boundary: a risk
only decides whether a person looks at the action first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resolver.events.actions import McpCall, SandboxAction
from resolver.events.base import ActionBase
from resolver.models.approval import SecurityRisk


@dataclass(frozen=True)
class LLMSecurityAnalyzer:
    """Returns the risk that the agent's model stated with the call, and the declared one of a tool
    of an MCP server, whose effects no model can know.

    tool_risks: the risks that the operator declared, by `SERVER` or `SERVER/TOOL`.
    """

    tool_risks: Mapping[str, SecurityRisk] = field(default_factory=dict)

    def security_risk(self, action: ActionBase) -> SecurityRisk:
        """Return the stated or declared risk, `UNKNOWN` if there is none."""
        match action:
            case SandboxAction(changes_files=False):
                return SecurityRisk.LOW
            case SandboxAction(security_risk=stated):
                return stated or SecurityRisk.UNKNOWN
            case McpCall(server=server, name=name):
                of_server = self.tool_risks.get(server, SecurityRisk.UNKNOWN)
                return self.tool_risks.get(f"{server}/{name}", of_server)
            case _:
                return SecurityRisk.LOW
