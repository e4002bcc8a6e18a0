"""The settings of what surrounds an agent: what it remembers, knows, may call and must ask for."""

from typing import Literal

from pydantic import field_validator
from pydantic_settings import BaseSettings

from resolver.config.condenser_names import parse_condenser
from resolver.config.mcp_servers import McpServers, RepositoryServers, secrets_of
from resolver.config.model_settings import setting
from resolver.models.approval import tool_risk
from resolver.models.pull_request import ReviewVerdict


class AgentSettings(BaseSettings):
    """Condensers, skills, MCP servers, confirmation."""

    condenser: str = setting(
        "importance",
        "What a conversation that grows too long forgets: names in a row, like "
        "`browser(keep_last=1),importance`. See memory.md.",
        repository=True,
        option=False,
    )
    condenser_max_tokens: int = setting(
        0,
        "Tokens of a conversation above which it is condensed; 0 means 100,000, or 70% of the "
        "model's context window where that is less.",
        repository=True,
        option=False,
        ge=0,
        le=10_000_000,
    )

    agents_choose_models: bool = setting(
        False,
        "Let an agent that a repository defines ask for any model of the same provider as `model`; "
        "else only for one that is named in these settings.",
        option=False,
    )
    mcp_servers: McpServers = setting(
        {},
        "MCP servers whose tools the agent is offered, as YAML: `{NAME: {command: ..., env: ...}}` "
        "or `{NAME: {url: ..., headers: ...}}`. They run on, or are reached from, the host. See "
        "mcp.md.",
        option=False,
    )
    mcp: RepositoryServers = setting(
        {},
        "What a repository says of MCP servers: which of the operator's it leaves out or narrows "
        "(`{NAME: false}`, `{NAME: {tools: [...]}}`), and those of its own, which run in the "
        "sandbox (`{NAME: {command: ..., args: [...]}}`).",
        repository=True,
        option=False,
    )

    organization_skills: bool = setting(
        True,
        "Read skills of the owner's `.github` and `.agents` repositories too, where the token can.",
        repository=True,
        option=False,
    )
    skills_embedding_model: str = setting(
        "",
        "Embedding model, as litellm names it, that finds skills by what the issue is about; none "
        "when empty. It has the model's address and key where it is of the same provider.",
        option=False,
    )
    notes: Literal["off", "propose", "store"] = setting(
        "off",
        "Notes of a run for later ones: `propose` adds them to AGENTS.md in the pull request, "
        "`store` keeps them with the program's own data. See skills.md.",
        repository=True,
        option=False,
    )

    review_max_comments: int = setting(
        25,
        "Most comments of one review, the most important first.",
        repository=True,
        option=False,
        ge=1,
        le=100,
    )
    review_verdicts: tuple[str, ...] = setting(
        (),
        "What a review may say beside commenting: `request_changes`, `approve`. An approval can "
        "count towards what a branch's protection asks for.",
        option=False,
    )

    confirmation: Literal["never", "high", "always"] = setting(
        "never",
        "Which actions of the agent are looked at before they are done: none, because the sandbox "
        "is the wall; those of high risk; or all, which then wait for a person. See "
        "confirmation.md.",
    )
    on_high: Literal["refuse", "wait"] = setting(
        "refuse",
        "With `confirmation: high`, whether an action of high risk is refused with a reason for "
        "the agent, or waits for a comment `@agent approve`.",
        option=False,
    )
    confirmation_wait: float = setting(
        600.0,
        "Seconds that a run waits for that comment; it then ends, and goes on when the comment "
        "comes.",
        option=False,
        ge=0,
        le=86_400,
    )
    record_all_risks: bool = setting(
        False,
        "Note low risks in the event log as well, not only medium and high ones.",
        option=False,
    )
    risk_judge: bool = setting(
        False,
        "Ask a model (service `judge`) about each action that runs something, beside the rules; "
        "the higher risk counts.",
        option=False,
    )
    tool_risks: tuple[str, ...] = setting(
        (),
        "Risk of MCP tools: `SERVER=high`, `SERVER/TOOL=medium`; low unless given.",
        option=False,
    )

    @field_validator("tool_risks")
    @classmethod
    def _tool_risks_can_be_read(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            tool_risk(text)
        return value

    @field_validator("review_verdicts")
    @classmethod
    def _verdicts_are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for verdict in value:
            if verdict not in {ReviewVerdict.REQUEST_CHANGES, ReviewVerdict.APPROVE}:
                raise ValueError(f"{verdict!r} is not one of request_changes, approve")
        return value

    @field_validator("condenser")
    @classmethod
    def _condenser_can_be_read(cls, value: str) -> str:
        parse_condenser(value)
        return value

    @property
    def mcp_secrets(self) -> tuple[str, ...]:
        """What of the MCP servers must never be written anywhere."""
        return secrets_of(self.mcp_servers)
