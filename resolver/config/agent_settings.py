"""Settings of the agents: condensers, MCP servers, notes and confirmation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
        "are applied, like `masking(keep_last=30),window`; `none` for none. "
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
        parse_condenser(value)
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


@dataclass(frozen=True)
class CondenserDeclaration:
    """A condenser that the setting can name.

    removes: what it removes, for the table in docs/explanation/memory.md.
    defaults: its parameters, with the values that the condenser has without them.
    """

    removes: str
    defaults: Mapping[str, int] = field(default_factory=dict)


_WINDOW = {"keep_first": 2, "keep_last": 12}

CONDENSERS: Mapping[str, CondenserDeclaration] = {
    "window": CondenserDeclaration("the oldest steps of the middle", _WINDOW),
    "summarizing": CondenserDeclaration(
        "the same as `window`; a model writes notes on the removed steps", _WINDOW
    ),
    "structured": CondenserDeclaration(
        "the same as `window`; the notes have fields: findings, cause, tried, decisions, done, "
        "next steps",
        _WINDOW,
    ),
    "attention": CondenserDeclaration("the steps that a model does not name as needed", _WINDOW),
    "masking": CondenserDeclaration(
        "older outputs, when the conversation is too long; the actions stay, with how they ended",
        {"keep_last": 12},
    ),
    "recent": CondenserDeclaration(
        "all steps but the first and the newest, without a summary",
        {"keep_first": 1, "keep_last": 30},
    ),
    "amortized": CondenserDeclaration(
        "half of the steps when there are more than `max_turns`, without a summary",
        {"max_turns": 120, "keep_first": 2},
    ),
    NO_CONDENSER: CondenserDeclaration("nothing: a conversation that does not fit ends the run"),
}
"""The condensers by name. `memory/condensers/registry.py` makes them."""

MAX_PARAMETER = 10_000
"""Maximum value of a parameter."""

_STAGE = re.compile(r"\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*(?:,|$)")
_PARAMETER = re.compile(r"\s*([a-z_]+)\s*=\s*(\d{1,6})\s*")


@dataclass(frozen=True)
class CondenserStage:
    """One condenser of the list, with its parameters."""

    name: str
    parameters: Mapping[str, int]


def parse_condenser(text: str) -> tuple[CondenserStage, ...]:
    """Return the condensers that `text` lists, in order.

    Raises ValueError that says what is wrong if the text is not a valid list.
    """
    stages: list[CondenserStage] = []
    position = 0
    while position < len(text):
        match = _STAGE.match(text, position)
        if match is None:
            raise ValueError(
                f"can't be read from {text[position : position + 40]!r} on; like `masking,window`"
            )
        stages.append(_parse_stage(match.group(1), match.group(2) or ""))
        position = match.end()
    if not stages:
        raise ValueError(f"names no condenser; they are {', '.join(CONDENSERS)}")
    return tuple(stages)


def _parse_stage(name: str, arguments: str) -> CondenserStage:
    declaration = CONDENSERS.get(name)
    if declaration is None:
        raise ValueError(f"there is no condenser {name!r}; they are {', '.join(CONDENSERS)}")
    allowed = declaration.defaults
    parameters: dict[str, int] = {}
    for assignment in filter(str.strip, arguments.split(",")):
        match = _PARAMETER.fullmatch(assignment)
        parameter = match.group(1) if match else ""
        if match is None or parameter not in allowed:
            accepted = f"it takes {' and '.join(allowed)}" if allowed else "it takes nothing"
            raise ValueError(
                f"{name} takes no {assignment.strip()!r}; {accepted}, as whole numbers"
            )
        if int(match.group(2)) > MAX_PARAMETER:
            raise ValueError(f"{name}: {assignment.strip()} is more than {MAX_PARAMETER}")
        parameters[parameter] = int(match.group(2))
    return CondenserStage(name, parameters)
