"""Settings of the agents: condensers, MCP servers, notes and confirmation."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import field_validator

from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS
from resolver.config.mcp_servers import McpServers, RepositoryServers, secrets_of
from resolver.models.approval import parse_action_rule, parse_tool_risk


class AgentSettings(SettingGroup):
    """Settings of the agent, its tools, its condensers and its notes."""

    title: ClassVar[str] = "Agent"
    when: ClassVar[str] = "Change these to choose the agent, its tools and its skills."

    agent: str = setting(
        "CodeActAgent",
        "Agent that does the work: `CodeActAgent`, `ReadOnlyAgent`, which answers a question, or "
        f"an agent that the repository defines. See {DOCS}/how-to/agents.md.",
    )
    condenser: str = setting(
        "masking,summarizing",
        "Condensers that shorten a conversation when it grows too long, in the order in which they "
        "are applied, like `masking,window`; `none` for none. "
        f"See {DOCS}/explanation/memory.md.",
        repository=True,
        option=False,
    )
    mcp_servers: McpServers = setting(
        {},
        "MCP servers whose tools the agent can call, as YAML: `{NAME: {command: ..., env: ...}}` "
        "or `{NAME: {url: ..., headers: ...}}`. They run on the host, or are reached from it. See "
        f"{DOCS}/how-to/mcp.md.",
        option=False,
    )
    mcp: RepositoryServers = setting(
        {},
        "MCP servers as a repository configures them: it can disable or narrow the operator's "
        "(`{NAME: false}`, `{NAME: {tools: [...]}}`), and add its own, which run in the sandbox "
        "(`{NAME: {command: ..., args: [...]}}`).",
        repository=True,
        option=False,
    )

    @field_validator("condenser")
    @classmethod
    def _check_condensers(cls, value: str) -> str:
        parse_condensers(value)
        return value

    @property
    def mcp_secrets(self) -> tuple[str, ...]:
        """The secrets of the operator's MCP servers, for the redactor."""
        return secrets_of(self.mcp_servers)


class ConfirmationSettings(SettingGroup):
    """Settings of the confirmation of actions."""

    title: ClassVar[str] = "Confirmation"
    when: ClassVar[str] = "Change these to look at risky actions before they run."

    confirmation: Literal["never", "risky", "always"] = setting(
        "never",
        "Which actions of the agent need the approval of a person before they are executed: none, "
        "because the sandbox is the boundary (`never`); those of high or unknown risk (`risky`); "
        f"or all of them (`always`). See {DOCS}/how-to/confirmation.md.",
    )
    confirm_actions: tuple[str, ...] = setting(
        (),
        "Rules for actions that need approval whatever their risk: `TOOL`, or `TOOL(TEXT)` for "
        "calls with this text, like `execute_bash(git push*)`. Both are globs.",
        option=False,
    )
    refuse_actions: tuple[str, ...] = setting(
        (),
        "Rules, as in `confirm_actions`, for actions that are never executed.",
        option=False,
    )
    mcp_tool_risks: tuple[str, ...] = setting(
        (),
        "Risks of MCP tools, like `SERVER=low` or `SERVER/TOOL=high`; unknown for all others.",
        option=False,
    )

    @field_validator("confirm_actions", "refuse_actions")
    @classmethod
    def _check_rules(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            parse_action_rule(text)
        return value

    @field_validator("mcp_tool_risks")
    @classmethod
    def _check_tool_risks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            parse_tool_risk(text)
        return value


NO_CONDENSER = "none"

CONDENSERS: Mapping[str, str] = {
    "window": "the oldest steps of the middle",
    "summarizing": "the same as `window`; a model writes notes on the removed steps",
    "structured": "the same as `window`; the notes have fields: findings, cause, tried, decisions, "
    "done, next steps",
    "attention": "the steps that a model does not name as needed",
    "masking": "older outputs, when the conversation is too long; the actions stay, with how they "
    "ended",
    "recent": "all steps but the first and the newest 30, without a summary",
    "amortized": "half of the steps when there are more than 120, without a summary",
    NO_CONDENSER: "nothing: a conversation that does not fit ends the run",
}
"""What each condenser removes, by its name. `memory/condensers/registry.py` makes them."""


def parse_condensers(text: str) -> tuple[str, ...]:
    """Return the names of the condensers that `text` lists. Raises ValueError for any other."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in CONDENSERS:
            raise ValueError(f"there is no condenser {name!r}; they are {', '.join(CONDENSERS)}")
    return names
