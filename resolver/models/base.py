"""Base classes of the domain models: frozen pydantic models."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A frozen value. Unknown fields are refused, since only our own code creates such values."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64")


class LoggedModel(FrozenModel):
    """A value that is stored in event logs. Fields that a newer version added are kept."""

    model_config = ConfigDict(extra="allow", ser_json_inf_nan="strings")
