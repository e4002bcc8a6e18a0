"""What every event has. The kinds are in actions.py, observations.py and lifecycle.py."""

from datetime import UTC, datetime
from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
"""Version of the log's format, written into the first event of every log.

New kinds and new optional fields don't change it: an older reader keeps what it does not know.
It is raised when an older reader would take an event for something else than it is; a log with a
higher version is therefore refused, by name of the version that wrote it.
"""


class Source(StrEnum):
    """Who made the event."""

    USER = "user"
    AGENT = "agent"
    ENVIRONMENT = "environment"


class ToolCall(BaseModel):
    """The native tool call that an action came from; its observation answers the same id."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str = Field(description="The call's id as the model's provider gave it.")
    name: str = Field(description="Name of the tool as the model wrote it.")
    arguments: str = Field(description="Raw JSON text as the model wrote it.")


class EventBase(BaseModel):
    """Common fields. Fields that a newer version added are kept, not lost."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="strings")

    id: int = Field(
        default=-1, description="0, 1, 2, ... without gap; -1 until the stream numbers it."
    )
    timestamp: AwareDatetime = Field(
        default=datetime(1970, 1, 1, tzinfo=UTC), description="UTC; set by the stream."
    )
    source: Source = Field(
        default=Source.ENVIRONMENT,
        description="Whose it is: the user's, the agent's, or the machinery's.",
    )
    cause: int | None = Field(default=None, description="Id of the action this event answers.")
    tool_call: ToolCall | None = Field(
        default=None, description="The native tool call behind the action, if there was one."
    )


class ActionBase(EventBase):
    """Something the agent (or the user) wants done."""

    source: Source = Field(default=Source.AGENT, description="Who wants it.")
    thought: str = Field(default="", description="The model's words beside the call.")
    reply: int | None = Field(
        default=None, description="Id of the model_replied event it was read from."
    )


class ObservationBase(EventBase):
    """What came of an action."""

    content: str = Field(default="", description="Text shown to the model.")
