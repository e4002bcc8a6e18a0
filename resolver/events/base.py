"""What every event has. The kinds are in actions.py, observations.py and lifecycle.py."""

from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
"""Version of the log's format, written into the first event of every log."""


class Source(StrEnum):
    """Who made the event."""

    USER = "user"
    AGENT = "agent"
    ENVIRONMENT = "environment"


class ToolCall(BaseModel):
    """The native tool call that an action came from; its observation answers the same id."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    arguments: str = Field(description="Raw JSON text as the model wrote it.")


class EventBase(BaseModel):
    """Common fields. Fields that a newer version added are kept, not lost."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int = Field(
        default=-1, description="0, 1, 2, ... without gap; -1 until the stream numbers it."
    )
    timestamp: datetime = Field(
        default=datetime(1970, 1, 1, tzinfo=UTC), description="UTC; set by the stream."
    )
    source: Source = Source.ENVIRONMENT
    cause: int | None = Field(default=None, description="Id of the action this event answers.")
    tool_call: ToolCall | None = None


class ActionBase(EventBase):
    """Something the agent (or the user) wants done."""

    source: Source = Source.AGENT
    thought: str = Field(default="", description="The model's words beside the call.")
    reply: int | None = Field(
        default=None, description="Id of the model_replied event it was read from."
    )


class ObservationBase(EventBase):
    """What came of an action."""

    content: str = Field(default="", description="Text shown to the model.")
