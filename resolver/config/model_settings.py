"""How a setting is declared, and the settings of the models and of what they may cost."""

from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


def setting(
    default: Any,
    description: str,
    *names: str,
    repository: bool = False,
    option: bool = True,
    **bounds: Any,
) -> Any:
    """A setting. `names`: further environment variables that set it; `repository`: may be set in
    the repository's own file (never true for anything that decides where a secret goes);
    `option`: has a command-line option (never true for a secret)."""
    return Field(
        default=default,
        description=description,
        json_schema_extra={"names": list(names), "repository": repository, "option": option},
        **bounds,
    )


class ServiceSettings(BaseModel):
    """How one service asks its model; None is as the run's own model is asked. The word of a model
    alone is its name."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str | None = Field(default=None, min_length=1)
    api_key: SecretStr | None = None
    base_url: str | None = None
    api_version: str | None = None
    region: str | None = None
    project: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    reasoning_effort: Effort | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    stream: bool | None = None
    timeout: float | None = Field(default=None, gt=0)
    retries: int | None = Field(default=None, ge=0, le=20)
    input_cost_per_token: float | None = Field(default=None, ge=0)
    output_cost_per_token: float | None = Field(default=None, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _word_is_the_model(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value

    @field_validator("base_url")
    @classmethod
    def _base_url_is_an_address(cls, value: str | None) -> str | None:
        address = urlsplit(value or "")
        if value is not None and (address.scheme not in ("http", "https") or not address.hostname):
            raise ValueError("it is not an http:// or https:// address")
        return value


class ModelSettings(BaseSettings):
    """Which model is asked, where and how, and which others when."""

    model: str = setting(
        "",
        "Model, as litellm names it (`anthropic/...`, `openai/...`), `replay:FILE` for the replies "
        "of an event log, or `scripted:FILE` for those of a YAML list.",
        "LLM_MODEL",
    )
    api_key: SecretStr | None = setting(
        None, "Key of the model endpoint.", "LLM_API_KEY", option=False
    )
    base_url: str | None = setting(None, "Base URL of the model endpoint.", "LLM_BASE_URL")
    api_version: str | None = setting(
        None, "API version, for Azure endpoints.", "LLM_API_VERSION", option=False
    )
    model_region: str | None = setting(
        None, "Region of the model at Bedrock or Vertex.", "AWS_REGION_NAME", option=False
    )
    model_project: str | None = setting(
        None, "Project of the model at Vertex.", "VERTEXAI_PROJECT", option=False
    )
    dialect: Literal["auto", "tools", "tags"] = setting(
        "auto", "How the model acts: native tool calls, tags in text, or what the model can do."
    )
    temperature: float | None = setting(
        None, "Sampling temperature; unset means the provider's default.", option=False, ge=0, le=2
    )
    reasoning_effort: Effort | None = setting(
        None,
        "How much the model thinks before it answers; unset means the provider's default.",
        option=False,
    )
    seed: int | None = setting(
        None, "Seed of the sampling, where the provider takes one.", option=False
    )
    stop_words: tuple[str, ...] = setting(
        (), "Words at which a reply of the model ends.", option=False
    )
    model_stream: bool = setting(
        False,
        "Have replies sent in pieces: for endpoints that answer in no other way, and for proxies "
        "that close a connection that is silent for long.",
        option=False,
    )
    model_timeout: float = setting(300.0, "Seconds one model call may take.", option=False, gt=0)
    model_retries: int = setting(
        5, "Attempts after a failed model call that may be tried again.", option=False, ge=0, le=20
    )
    input_cost_per_token: float | None = setting(
        None,
        "US dollars per input token, for a model that litellm has no price of.",
        option=False,
        ge=0,
    )
    output_cost_per_token: float | None = setting(
        None,
        "US dollars per output token, for a model that litellm has no price of.",
        option=False,
        ge=0,
    )
    fallback_models: tuple[str, ...] = setting(
        (),
        "Models that are asked in turn when the one before is down or refuses. At the same "
        "provider they have the same address and key; at another the key is in the provider's own "
        "variable (`ANTHROPIC_API_KEY`, ...).",
        option=False,
    )
    model_rules: tuple[str, ...] = setting(
        (),
        "Rules that choose another model, the first that applies: `service:NAME=MODEL`, "
        "`agent:NAME=MODEL`, `images=MODEL`, `context>TOKENS=MODEL`, `budget<SHARE=MODEL`.",
        option=False,
    )
    services: dict[str, ServiceSettings] = setting(
        {},
        "Models of single services (`agent`, `condenser`, `judge`) or agents "
        "(`ReadOnlyAgent`, ...), as YAML: `{condenser: {model: anthropic/NAME}}`. See models.md.",
        option=False,
    )
    max_monthly_budget: float | None = setting(
        None,
        "Most US dollars that the runs of one repository may cost in a month (UTC) on a server; "
        "no bound unless given.",
        option=False,
        gt=0,
        allow_inf_nan=False,
    )
    max_daily_budget: float | None = setting(
        None,
        "Most US dollars that all runs of a server together may cost in a day (UTC); no bound "
        "unless given.",
        option=False,
        gt=0,
        allow_inf_nan=False,
    )
    completions_dir: str = setting(
        "",
        "Folder for every call to a model, whole but without secrets, a folder a run; none when "
        "empty.",
        option=False,
    )
