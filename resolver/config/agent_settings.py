"""Settings of the agents: condensers, MCP servers, skills, notes, checks, reviews, confirmation."""

from typing import Literal

from pydantic import field_validator
from pydantic_settings import BaseSettings

from resolver.config.check_settings import CheckList
from resolver.config.condenser_names import parse_condenser
from resolver.config.mcp_servers import McpServers, RepositoryServers, secrets_of
from resolver.config.model_settings import setting
from resolver.models.approval import tool_risk
from resolver.models.pull_request import ReviewVerdict


class AgentSettings(BaseSettings):
    """Settings of condensers, MCP servers, skills, notes, checks, reviews and confirmation."""

    condenser: str = setting(
        "importance",
        "Condensers that shorten a conversation when it grows too long, in the order in which "
        "they are applied, like `browser(keep_last=1),importance`. See memory.md.",
        repository=True,
        option=False,
    )
    condenser_max_tokens: int = setting(
        0,
        "Number of tokens above which a conversation is condensed. 0 means 100,000, or 70% of the "
        "model's context window if that is less.",
        repository=True,
        option=False,
        ge=0,
        le=10_000_000,
    )

    agents_choose_models: bool = setting(
        False,
        "Let an agent that a repository defines choose any model of the same provider as `model`. "
        "Otherwise it can choose only models that are named in these settings.",
        option=False,
    )
    mcp_servers: McpServers = setting(
        {},
        "MCP servers whose tools the agent can call, as YAML: `{NAME: {command: ..., env: ...}}` "
        "or `{NAME: {url: ..., headers: ...}}`. They run on the host, or are reached from it. See "
        "mcp.md.",
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

    organization_skills: bool = setting(
        True,
        "Also read skills from the owner's `.github` and `.agents` repositories, if the token has "
        "access to them.",
        repository=True,
        option=False,
    )
    skills_embedding_model: str = setting(
        "",
        "Embedding model, as litellm names it, that selects skills by similarity to the issue; no "
        "such selection when empty. It uses the base URL and key of `model` if both are of the "
        "same provider.",
        option=False,
    )
    notes: Literal["off", "propose", "store"] = setting(
        "off",
        "What happens to the notes that a run takes for later runs: `propose` adds them to "
        "AGENTS.md in the pull request, `store` keeps them in Resolver's own data. See skills.md.",
        repository=True,
        option=False,
    )

    checks: CheckList = setting(
        (),
        "Commands that show whether a change works, as a list of `{name: ..., command: ...}`, each "
        "with an optional `timeout` in seconds, `paths`, `report` and `report_format`. When empty, "
        "they are found in the files of the repository. See checks.md.",
        repository=True,
        option=False,
    )

    review_max_comments: int = setting(
        25,
        "Maximum number of comments in one review; the most important are kept.",
        repository=True,
        option=False,
        ge=1,
        le=100,
    )
    review_verdicts: tuple[str, ...] = setting(
        (),
        "Verdicts that a review may give besides a plain comment: `request_changes`, `approve`. "
        "An approval can count towards the reviews that branch protection requires.",
        option=False,
    )

    confirmation: Literal["never", "high", "always"] = setting(
        "never",
        "Which actions of the agent need confirmation before they are executed: none, because the "
        "sandbox is the boundary (`never`); those of high risk (`high`); or all of them, each of "
        "which then waits for a person (`always`). See confirmation.md.",
    )
    on_high: Literal["refuse", "wait"] = setting(
        "refuse",
        "With `confirmation: high`, what happens to an action of high risk: it is refused, and "
        "the agent gets the reason (`refuse`), or it waits for a comment `@agent approve` "
        "(`wait`).",
        option=False,
    )
    confirmation_wait: float = setting(
        600.0,
        "Seconds that a run waits for the comment that approves an action. After that the run "
        "ends, and it resumes when the comment is written.",
        option=False,
        ge=0,
        le=86_400,
    )
    record_all_risks: bool = setting(
        False, "Record low risks in the event log too, not only medium and high ones.", option=False
    )
    risk_judge: bool = setting(
        False,
        "Ask a model (service `judge`) for the risk of each action that executes something, in "
        "addition to the rules. The higher of the two risks counts.",
        option=False,
    )
    tool_risks: tuple[str, ...] = setting(
        (),
        "Risks of MCP tools, like `SERVER=high` or `SERVER/TOOL=medium`; low for all others.",
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
        """The secrets of the operator's MCP servers, for the redactor."""
        return secrets_of(self.mcp_servers)
