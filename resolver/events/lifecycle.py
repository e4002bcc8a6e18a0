"""Events that are neither actions nor observations: they record the progress of the run itself."""

from collections.abc import Iterable
from typing import Literal

from pydantic import AwareDatetime, Field

from resolver.events.base import SCHEMA_VERSION, EventBase
from resolver.models.approval import PendingApproval
from resolver.models.base import JsonObject
from resolver.models.run import Completion, McpTool, RunLimits, Task
from resolver.models.verification import (
    CheckExecution,
    OmittedCheck,
    TreeName,
    UnpreparedEnvironment,
    VerificationEvidence,
)

ROOT_STAGE = "checkout"
"""Name of the stage whose detail is the repository's path in the sandbox."""

AGENT = "agent"
"""Name of the service whose replies are the steps of a run."""


class RunStarted(EventBase):
    """Start of the run, always event 0: what the run is, and its limits."""

    kind: Literal["run_started"] = "run_started"
    schema_version: int = Field(
        default=SCHEMA_VERSION,
        ge=SCHEMA_VERSION,
        le=SCHEMA_VERSION,
        description="Version of the log's format.",
    )
    run: str = Field(description="Id of the run.")
    version: str = Field(description="Version of Resolver that wrote the log.")
    task: Task = Field(description="The task.")
    base: str = Field(description="Commit that the work starts from.")
    agent: str = Field(description="Name of the agent.")
    model: str = Field(description="Name of the model.")
    runtime: str = Field(description="Kind of sandbox: docker or local.")
    limits: RunLimits = Field(description="Limits of the run.")
    condenser: str | None = Field(default=None, description="Value of the setting `condenser`.")


class SystemPrompt(EventBase):
    """The agent's system message and tools."""

    kind: Literal["system_prompt"] = "system_prompt"
    content: str = Field(description="The whole message.")
    tools: tuple[str, ...] = Field(
        default=(), description="Names of the tools offered to the model."
    )
    dialect: Literal["tools", "tags"] = Field(
        default="tools", description="`tools` for native tool calls, `tags` for tags in the text."
    )
    mcp_tools: tuple[McpTool, ...] = Field(
        default=(),
        description="Offered tools of MCP servers. They are needed to read the model's replies.",
    )


class ModelReplied(EventBase):
    """A reply of the model to the agent, unchanged, with its cost."""

    kind: Literal["model_replied"] = "model_replied"
    completion: Completion = Field(description="The unchanged reply.")


class ServiceReplied(EventBase):
    """A reply of a model to a service other than the agent, such as the condenser. It costs money
    but is not a step."""

    kind: Literal["service_replied"] = "service_replied"
    service: str = Field(description="The service: condenser, check or skills.")
    completion: Completion = Field(description="The unchanged reply.")


class ModelRetried(EventBase):
    """A model call failed and is retried."""

    kind: Literal["model_retried"] = "model_retried"
    attempt: int = Field(description="Number of failed attempts.")
    wait: float = Field(description="Seconds until the next attempt.")
    reason: str = Field(description="Error of the endpoint.")
    service: str = Field(
        default=AGENT,
        description="The service that made the call: agent, condenser or check.",
    )


class ModelSwitched(EventBase):
    """From now on another model is used."""

    kind: Literal["model_switched"] = "model_switched"
    from_model: str = Field(description="Name of the previous model.")
    to_model: str = Field(description="Name of the new model.")
    reason: str = Field(
        description="The reason: the previous model's error, or the rule that applies."
    )
    service: str = Field(
        default=AGENT,
        description="The service that uses the model: agent or condenser.",
    )


class Condensation(EventBase):
    """The events that are left out of the conversation from here on, and their replacement."""

    kind: Literal["condensation"] = "condensation"
    forgotten: tuple[int, ...] = Field(description="Ids of the events that are left out.")
    masked: tuple[int, ...] = Field(
        default=(), description="Ids of the observations of which only the outcome is shown."
    )
    summary: str = Field(
        default="",
        description="Summary of everything that is left out so far, made from the log. It "
        "takes the place of those events.",
    )
    notes: str = Field(
        default="",
        description="Summary of the same events, written by a model and not derived from the log.",
    )


class Warned(EventBase):
    """Something people should know: a limit is near, a subscriber failed, isolation is weak."""

    kind: Literal["warned"] = "warned"
    about: str = Field(description="Short code, such as 'limit', 'stuck', 'redacted'.")
    message: str = Field(description="The warning, for people.")
    to_agent: bool = Field(default=False, description="True if the agent receives the warning too.")


class ConfirmationAsked(EventBase):
    """A person was asked to approve an action."""

    kind: Literal["confirmation_asked"] = "confirmation_asked"
    action: int = Field(description="Id of the action.")
    wanted: PendingApproval = Field(description="What the person was shown.")
    shown_at: AwareDatetime | None = Field(
        default=None,
        description="Time at which it was shown, by the clock of GitHub; older approvals are "
        "not for this action. Missing if it could not be shown.",
    )


class ConfirmationAnswered(EventBase):
    """A person approved or denied an action."""

    kind: Literal["confirmation_answered"] = "confirmation_answered"
    action: int = Field(description="Id of the action.")
    approved: bool = Field(description="True if the action may be executed, this once.")
    by: str | None = Field(default=None, description="Login of the person; none for the operator.")
    reason: str = Field(default="", description="The person's reason for denying it.")


class ReplayDiverged(EventBase):
    """A replayed run differs from the recorded one."""

    kind: Literal["replay_diverged"] = "replay_diverged"
    recorded_id: int = Field(description="Id of the event in the recorded log.")
    field: str = Field(description="The field that differs.")
    recorded: str = Field(description="The recorded value.")
    found: str = Field(description="The value in the replayed run.")


class Resumed(EventBase):
    """The run continues in another process. The time since the previous event does not count for
    the run. Actions that the log records are executed again in a fresh sandbox."""

    kind: Literal["resumed"] = "resumed"
    version: str = Field(description="Version of Resolver that continues the run.")
    run: str = Field(
        description="Id of the run from now on. It differs from the previous id if a person "
        "requested the continuation."
    )
    reason: str = Field(default="", description="The reason, for people.")
    by: str | None = Field(
        default=None, description="Login of the person who requested it, if somebody did."
    )


class LimitsExtended(EventBase):
    """The limits of the run were raised."""

    kind: Literal["limits_extended"] = "limits_extended"
    limits: RunLimits = Field(description="The limits from now on, as totals.")
    by: str | None = Field(default=None, description="Login of the person who raised them.")


class DelegateEvent(EventBase):
    """An event from the stream of a delegate. The ids in that stream start at 0."""

    kind: Literal["delegate_event"] = "delegate_event"
    delegate: int = Field(description="Id of the delegate action in this log.")
    event: JsonObject = Field(description="The event with its id in the delegate's stream.")


class StageCompleted(EventBase):
    """A stage of the pipeline is complete, such as cloned, sandbox, change, published."""

    kind: Literal["stage_completed"] = "stage_completed"
    stage: str = Field(description="Short name of the stage.")
    detail: str = Field(default="", description="The result of the stage, for people.")
    seconds: float = Field(default=0.0, description="Duration.")


class Egress(EventBase):
    """A connection that a program in the sandbox requested from the proxy, logged after it
    ended."""

    kind: Literal["egress"] = "egress"
    host: str = Field(description="Requested host.")
    port: int = Field(description="Requested port.")
    allowed: bool = Field(description="True if the allow-list allows the connection.")
    reason: str = Field(
        default="", description="Why the connection was refused, cut off or not made."
    )
    bytes_sent: int = Field(default=0, description="Bytes from the sandbox to the host.")
    bytes_received: int = Field(default=0, description="Bytes from the host to the sandbox.")
    seconds: float = Field(default=0.0, description="Time for which it was open.")
    connections: int = Field(
        default=1,
        description="Number of similar connections that this event stands for. Only the first "
        "hundred have an event each.",
    )


class CheckExecuted(EventBase):
    """Resolver executed a check of the project in a sandbox of its own, to verify the change."""

    kind: Literal["check_executed"] = "check_executed"
    key: str = Field(
        description="Digest of everything that decides the result: tree, command, tests, "
        "repetition."
    )
    name: str = Field(description="Name of the check.")
    command: str = Field(description="The command that was executed.")
    at: TreeName = Field(
        description="The executed tree: the base commit, the base with the change's tests, the "
        "change, or the change with the base's tests."
    )
    tree: str = Field(description="Git tree that was checked out.")
    repetition: int = Field(default=0, description="Number of earlier, identical executions.")
    is_cached: bool = Field(
        default=False, description="True if the result of an earlier run was used."
    )
    execution: CheckExecution = Field(description="How it ended.")


class VerificationCompleted(EventBase):
    """Resolver compared the checks at the base commit and at the change."""

    kind: Literal["verification_completed"] = "verification_completed"
    tree: str = Field(description="Git tree of the change.")
    evidence: VerificationEvidence = Field(description="What the checks show.")
    omitted: tuple[OmittedCheck, ...] = Field(
        default=(), description="Checks that were not executed."
    )
    unprepared: UnpreparedEnvironment | None = Field(
        default=None, description="Why there is no environment that fits the change."
    )
    sent_to_agent: bool = Field(
        default=False, description="True if the agent got the output of failing checks next."
    )


def roots_of(events: Iterable[EventBase]) -> tuple[str, ...]:
    """Return the repository's paths in the sandboxes of a log, in order, without duplicates."""
    found = [
        event.detail
        for event in events
        if isinstance(event, StageCompleted) and event.stage == ROOT_STAGE
    ]
    return tuple(dict.fromkeys(found))
