"""What is known of a model before it is asked: which one, where, and how."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class ModelConfig(BaseModel):
    """Which model to ask, where, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(description="As litellm names it; without a provider at a `base_url`.")
    api_key: SecretStr | None = None
    base_url: str | None = None
    api_version: str | None = Field(default=None, description="For Azure.")
    region: str | None = Field(default=None, description="For Bedrock and Vertex.")
    project: str | None = Field(default=None, description="For Vertex.")
    temperature: float | None = Field(default=None, description="None: the provider's default.")
    reasoning_effort: Effort | None = Field(default=None, description="None: the default.")
    seed: int | None = None
    stop: tuple[str, ...] = Field(default=(), description="Words at which a reply ends.")
    stream: bool = Field(default=False, description="Whether replies are sent in pieces.")
    timeout: float = Field(default=300.0, gt=0, description="Seconds one attempt may take.")
    retries: int = Field(default=5, ge=0, description="Attempts after a failed first one.")
    input_cost_per_token: float | None = Field(default=None, ge=0, description="US dollars.")
    output_cost_per_token: float | None = Field(default=None, ge=0, description="US dollars.")
