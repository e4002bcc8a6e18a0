"""Base classes of the pydantic models."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

JsonObject = dict[str, Any]
"""A parsed JSON object."""


def describe_first_error(error: ValidationError) -> str:
    """Return the place and the message of the first error, such as `agent.timeout: Input ...`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


class FrozenModel(BaseModel):
    """A frozen value. Unknown fields are refused, since only our own code creates such values."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64")


class LoggedModel(FrozenModel):
    """A value that is stored in event logs. Fields that a newer version added are kept."""

    model_config = ConfigDict(extra="allow", ser_json_inf_nan="strings")
