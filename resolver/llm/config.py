"""Configuration of a model: its name, its address, and the parameters of requests."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class SetBy(BaseModel):
    """Names of the settings that configure a model, for error messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "LLM_MODEL"
    api_key: str = "LLM_API_KEY"
    base_url: str = "LLM_BASE_URL"


THE_RUNS_OWN = SetBy()


class ModelConfig(BaseModel):
    """Configuration of a model: its name, its address, and the parameters of requests."""

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
    set_by: SetBy = THE_RUNS_OWN


CLOUDS = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}
"""Clouds that host models in a region, with the variables of their own credentials."""


def own_variable(provider: str) -> str:
    """Return the environment variable that holds a provider's own key."""
    return CLOUDS.get(provider, f"{provider.upper() or 'OPENAI'}_API_KEY")
