"""Events that are neither action nor observation: the run's own record."""

from collections.abc import Iterable
from typing import Literal

from pydantic import AwareDatetime, Field

from resolver.events.base import SCHEMA_VERSION, EventBase
from resolver.models.approval import PendingApproval, RiskLevel
from resolver.models.run import Completion, JsonObject, McpTool, RunLimits, Task

ROOT_STAGE = "checkout"
"""Stage whose detail is the repository's path in the sandbox."""

AGENT = "agent"
"""The service whose replies are the steps of a run."""


class RunStarted(EventBase):
    """Always event 0: what the run is and under which bounds."""

    kind: Literal["run_started"] = "run_started"
    schema_version: int = Field(
        default=SCHEMA_VERSION, ge=1, le=SCHEMA_VERSION, description="Version of the log's format."
    )
    run: str = Field(description="Id of the run.")
    version: str = Field(description="Version of Resolver that wrote the log.")
    task: Task = Field(description="What is to be done.")
    base: str = Field(description="Commit the work starts from.")
    agent: str = Field(description="Name of the agent.")
    model: str = Field(description="Name of the model.")
    runtime: str = Field(description="Kind of sandbox: docker, local or remote.")
    limits: RunLimits = Field(description="Bounds of the run.")
    condenser: str = Field(
        default="", description="What the conversation forgets, as the setting of that name has it."
    )
    condenser_max_tokens: int = Field(
        default=0, description="The setting of that name: tokens above which it is condensed."
    )


class SystemPrompt(EventBase):
    """The system message the agent works under."""

    kind: Literal["system_prompt"] = "system_prompt"
    content: str = Field(description="The whole message.")
    tools: tuple[str, ...] = Field(default=(), description="Names of the tools offered.")
    dialect: Literal["tools", "tags"] = Field(
        default="tools", description="Native tool calls, or tags in the text."
    )
    mcp_tools: tuple[McpTool, ...] = Field(
        default=(), description="Tools of MCP servers that are offered: replies are read by them."
    )


class ModelReplied(EventBase):
    """One reply of the model, whole, with its cost."""

    kind: Literal["model_replied"] = "model_replied"
    completion: Completion = Field(description="The reply as it came.")


class ServiceReplied(EventBase):
    """A reply to a question that is not the agent's: of the condenser, of the judge of risks. It
    costs money, and is no step."""

    kind: Literal["service_replied"] = "service_replied"
    service: str = Field(description="Who asked: condenser, judge, check.")
    completion: Completion = Field(description="The reply as it came.")


class ModelRetried(EventBase):
    """A call to the model failed and is tried again."""

    kind: Literal["model_retried"] = "model_retried"
    attempt: int = Field(description="How many attempts have failed.")
    wait: float = Field(description="Seconds until the next attempt.")
    reason: str = Field(description="What the endpoint said.")
    service: str = Field(default=AGENT, description="Who asked: agent, condenser, judge.")


class ModelSwitched(EventBase):
    """Another model is asked from now on."""

    kind: Literal["model_switched"] = "model_switched"
    from_model: str = Field(description="Name of the model that was asked before.")
    to_model: str = Field(description="Name of the model that is asked now.")
    reason: str = Field(description="Why: what the other one said, or which rule applies.")
    service: str = Field(default=AGENT, description="Who asks: agent, condenser, judge.")


class Condensation(EventBase):
    """What the conversation forgets from here on, and what stands in for it."""

    kind: Literal["condensation"] = "condensation"
    forgotten: tuple[int, ...] = Field(description="Ids of the events that are left out.")
    masked: tuple[int, ...] = Field(
        default=(), description="Ids of observations of which only the outcome is shown."
    )
    summary: str = Field(
        default="",
        description="What the log says of all that is left out so far; it stands in its place.",
    )
    notes: str = Field(
        default="", description="What a model wrote about the same: its words, not the record's."
    )


class Warned(EventBase):
    """Something a person should know: a limit is near, a subscriber failed, isolation is weak."""

    kind: Literal["warned"] = "warned"
    about: str = Field(description="Short machine word, like 'limit', 'stuck', 'redacted'.")
    message: str = Field(description="For a person.")
    to_agent: bool = Field(default=False, description="True when the agent is told as well.")


class RiskAssessed(EventBase):
    """How risky an action of the agent is. Low risks are told only where the settings say so."""

    kind: Literal["risk_assessed"] = "risk_assessed"
    action: int = Field(description="Id of the action.")
    level: RiskLevel = Field(description="The risk.")
    reasons: tuple[str, ...] = Field(
        default=(), description="The rules that apply, each with what was seen."
    )


class ConfirmationAsked(EventBase):
    """A person was asked whether an action may be done."""

    kind: Literal["confirmation_asked"] = "confirmation_asked"
    action: int = Field(description="Id of the action.")
    wanted: PendingApproval = Field(description="What the person was shown.")
    shown_at: AwareDatetime | None = Field(
        default=None,
        description="When it could be seen, by the forge's clock: an older approval is not for it; "
        "left out where it could not be shown.",
    )


class ConfirmationAnswered(EventBase):
    """A person has decided about an action."""

    kind: Literal["confirmation_answered"] = "confirmation_answered"
    action: int = Field(description="Id of the action.")
    approved: bool = Field(description="Whether it may be done, this once.")
    by: str = Field(default="", description="Login of who decided; empty for the operator.")
    reason: str = Field(default="", description="Why not, in the person's words.")


class ReplayDiverged(EventBase):
    """A replayed run saw something else than the recorded one."""

    kind: Literal["replay_diverged"] = "replay_diverged"
    recorded_id: int = Field(description="Id of the event in the recorded log.")
    field: str = Field(description="Which field of it differs.")
    recorded: str = Field(description="The recorded value, from where they part.")
    found: str = Field(description="The value seen now, from where they part.")


class Resumed(EventBase):
    """The run goes on in another process. Time between the event before and this one is not the
    run's. What the log says was done in the sandbox is done again in a fresh one."""

    kind: Literal["resumed"] = "resumed"
    version: str = Field(description="Version of Resolver that goes on.")
    run: str = Field(description="Id of the run from now on; another one when it was asked for.")
    reason: str = Field(default="", description="Why, in words for a person.")
    by: str = Field(default="", description="Login of who asked for it, when somebody did.")


class LimitsExtended(EventBase):
    """Somebody has granted the run more."""

    kind: Literal["limits_extended"] = "limits_extended"
    limits: RunLimits = Field(description="The bounds from now on, in total.")
    by: str = Field(default="", description="Login of who granted it.")


class DelegateEvent(EventBase):
    """An event of the nested stream of a delegate. Its own ids start at 0."""

    kind: Literal["delegate_event"] = "delegate_event"
    delegate: int = Field(description="Id of the delegate action, in this log.")
    event: JsonObject = Field(description="The event as the nested stream numbered it.")


class StageCompleted(EventBase):
    """A step of the pipeline is done (cloned, sandbox, change, published, ...)."""

    kind: Literal["stage_completed"] = "stage_completed"
    stage: str = Field(description="Short machine word.")
    detail: str = Field(default="", description="What came of it, for a person.")
    seconds: float = Field(default=0.0, description="How long it took.")


class Egress(EventBase):
    """A connection that a program in the sandbox asked the proxy for, after it ended."""

    kind: Literal["egress"] = "egress"
    host: str = Field(description="As it was asked for.")
    port: int = Field(description="As it was asked for.")
    allowed: bool = Field(description="Whether the allow-list has it.")
    reason: str = Field(default="", description="Why it was refused, cut off or not made.")
    bytes_sent: int = Field(default=0, description="Bytes from the sandbox to the host.")
    bytes_received: int = Field(default=0, description="Bytes from the host to the sandbox.")
    seconds: float = Field(default=0.0, description="How long it was open.")
    connections: int = Field(
        default=1, description="How many alike this stands for; past a hundred they are summed."
    )


def roots_of(events: Iterable[EventBase]) -> tuple[str, ...]:
    """The repository's paths in the sandboxes that a log tells of, in order, each once."""
    found = [
        event.detail
        for event in events
        if isinstance(event, StageCompleted) and event.stage == ROOT_STAGE
    ]
    return tuple(dict.fromkeys(found))
