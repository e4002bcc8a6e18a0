"""What every noun is: a frozen value. The nouns themselves are in model.py and pull.py."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A frozen value. Unknown fields are a mistake of ours and are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64")


class LoggedModel(FrozenModel):
    """A noun that stands in event logs. Fields that a newer version added are kept, not lost."""

    model_config = ConfigDict(extra="allow", ser_json_inf_nan="strings")
