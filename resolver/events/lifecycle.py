"""Events that are neither action nor observation: the run's own record."""

from typing import Literal

from pydantic import Field

from resolver.events.base import SCHEMA_VERSION, EventBase
from resolver.model import Completion, Limits, Task


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


class StageCompleted(EventBase):
    """A step of the pipeline is done (cloned, sandbox, change, published, ...)."""

    kind: Literal["stage_completed"] = "stage_completed"
    stage: str
    detail: str = ""
    seconds: float = 0.0
