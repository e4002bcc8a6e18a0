"""Base classes of the events. The kinds are in actions.py, observations.py and lifecycle.py."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from resolver.models.approval import SecurityRisk

SCHEMA_VERSION = 1
"""Version of the log's format, written into the first event of every log.

New kinds and new optional fields do not change it, because an older reader keeps what it does not
know. It is raised when an older reader would misinterpret an event. A log with another version is
refused, with a message that names the version of Resolver that wrote it.
"""


class Source(StrEnum):
    """The party that made the event."""

    USER = "user"
    AGENT = "agent"
    ENVIRONMENT = "environment"


class ToolCall(BaseModel):
    """The native tool call that an action came from; its answer to the model has the same id."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str = Field(description="Id of the call, as assigned by the model's provider.")
    name: str = Field(description="Name of the tool, as written by the model.")
    arguments: str = Field(description="Raw JSON text, as written by the model.")


class EventBase(BaseModel):
    """Fields of all events. Unknown fields, from a newer version, are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="strings")

    id: int = Field(
        default=-1,
        description="Number of the event: 0, 1, 2, ... without gap; -1 until the stream "
        "assigns it.",
    )
    timestamp: AwareDatetime = Field(
        default=datetime(1970, 1, 1, tzinfo=UTC), description="Time in UTC, set by the stream."
    )
    source: Source = Field(
        default=Source.ENVIRONMENT,
        description="Who made the event: the user, the agent, or Resolver itself.",
    )
    cause: int | None = Field(default=None, description="Id of the action that this event answers.")
    tool_call: ToolCall | None = Field(
        default=None,
        description="The native tool call that the action came from, if there was one.",
    )


class ObservationBase(EventBase):
    """The result of an action.

    rest_hint: sentence that tells the model how to see what was truncated from `content`;
        None if it can't.
    """

    rest_hint: ClassVar[str | None] = None

    content: str = Field(default="", description="Text that is shown to the model.")


class ActionBase(EventBase):
    """Something that the agent or the user requests.

    observation: type of the result. An ErrorObservation may take its place. None for actions that
    are not executed.
    is_external: True if the action has effects outside the sandbox. It is never executed again,
    because a fresh sandbox does not undo these effects.
    """

    observation: ClassVar[type[ObservationBase] | None] = None
    is_external: ClassVar[bool] = False

    source: Source = Field(default=Source.AGENT, description="Who requests it.")
    thought: str = Field(
        default="", description="Text that the model wrote in addition to the call."
    )
    reply: int | None = Field(
        default=None, description="Id of the model_replied event that the action was read from."
    )
    security_risk: SecurityRisk | None = Field(
        default=None,
        description="Risk of the action, as stated by the model that requests it.",
    )
