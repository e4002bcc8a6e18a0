"""Events that are neither action nor observation: the run's own record."""

from typing import Literal

from pydantic import Field

from resolver.events.base import SCHEMA_VERSION, EventBase
from resolver.model import Completion, JsonObject, Limits, Task


class RunStarted(EventBase):
    """Always event 0: what the run is and under which bounds."""

    kind: Literal["run_started"] = "run_started"
    schema_version: int = SCHEMA_VERSION
    run: str
    version: str = Field(description="Version of Resolver that wrote the log.")
    task: Task
    base: str = Field(description="Commit the work starts from.")
    agent: str
    model: str
    runtime: str
    limits: Limits


class SystemPrompt(EventBase):
    """The system message the agent works under."""

    kind: Literal["system_prompt"] = "system_prompt"
    content: str
    tools: tuple[str, ...] = Field(default=(), description="Names of the tools offered.")
    dialect: Literal["tools", "tags"] = "tools"


class ModelReplied(EventBase):
    """One reply of the model, whole, with its cost."""

    kind: Literal["model_replied"] = "model_replied"
    completion: Completion


class ModelRetried(EventBase):
    """A call to the model failed and is tried again."""

    kind: Literal["model_retried"] = "model_retried"
    attempt: int
    wait: float = Field(description="Seconds until the next attempt.")
    reason: str


class Condensation(EventBase):
    """Events that the conversation forgets, and what stands in for them."""

    kind: Literal["condensation"] = "condensation"
    forgotten: tuple[int, ...]
    summary: str = ""


class Warned(EventBase):
    """Something a person should know: a limit is near, a subscriber failed, isolation is weak."""

    kind: Literal["warned"] = "warned"
    about: str = Field(description="Short machine word, like 'limit', 'stuck', 'redacted'.")
    message: str
    to_agent: bool = Field(default=False, description="True when the agent is told as well.")


class ReplayDiverged(EventBase):
    """A replayed run saw something else than the recorded one."""

    kind: Literal["replay_diverged"] = "replay_diverged"
    recorded_id: int
    field: str
    recorded: str
    found: str


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
    limits: Limits = Field(description="The bounds from now on, in total.")
    by: str = ""


class DelegateEvent(EventBase):
    """An event of the nested stream of a delegate. Its own ids start at 0."""

    kind: Literal["delegate_event"] = "delegate_event"
    delegate: int = Field(description="Id of the delegate action, in this log.")
    event: JsonObject = Field(description="The event as the nested stream numbered it.")


class StageCompleted(EventBase):
    """A step of the pipeline is done (cloned, sandbox, change, published, ...)."""

    kind: Literal["stage_completed"] = "stage_completed"
    stage: str
    detail: str = ""
    seconds: float = 0.0
