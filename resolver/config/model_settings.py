"""The function that declares a setting, and the settings of models and budgets."""

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
    """Declare a setting of a pydantic model.

    names: further environment variables that set it.
    repository: the setting can be set in the repository's settings file. Never true for a setting
    that decides where a secret is sent.
    option: the setting has a command-line option. Never true for a secret.
    bounds: constraints for `pydantic.Field`, like `ge` and `le`.
    """
    return Field(
        default=default,
        description=description,
        json_schema_extra={"names": list(names), "repository": repository, "option": option},
        **bounds,
    )


class ServiceSettings(BaseModel):
    """Model settings of one service or agent. None inherits the value of the run's own model.

    A plain string instead of a mapping is the name of the model.
    """

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
    """Settings of the models: connection, sampling, cost, fallbacks, routing rules and budgets."""

    model: str = setting(
        "",
        "Model, as litellm names it (`anthropic/...`, `openai/...`); `replay:FILE` for the "
        "replies of an event log; `scripted:FILE` for those of a YAML list.",
        "LLM_MODEL",
    )
    api_key: SecretStr | None = setting(
        None, "API key of the model endpoint.", "LLM_API_KEY", option=False
    )
    base_url: str | None = setting(None, "Base URL of the model endpoint.", "LLM_BASE_URL")
    api_version: str | None = setting(
        None, "API version, for Azure endpoints.", "LLM_API_VERSION", option=False
    )
    model_region: str | None = setting(
        None, "Region of a model on Bedrock or Vertex.", "AWS_REGION_NAME", option=False
    )
    model_project: str | None = setting(
        None, "Project of a model on Vertex.", "VERTEXAI_PROJECT", option=False
    )
    dialect: Literal["auto", "tools", "tags"] = setting(
        "auto",
        "How the model calls tools: native tool calls (`tools`), tags in text (`tags`), or "
        "whichever the model supports (`auto`).",
    )
    temperature: float | None = setting(
        None, "Sampling temperature; the provider's default when unset.", option=False, ge=0, le=2
    )
    reasoning_effort: Effort | None = setting(
        None,
        "How much the model reasons before it answers; the provider's default when unset.",
        option=False,
    )
    seed: int | None = setting(None, "Sampling seed, for providers that accept one.", option=False)
    stop_words: tuple[str, ...] = setting(
        (), "Stop sequences: a reply of the model ends at the first of them.", option=False
    )
    model_stream: bool = setting(
        False,
        "Stream the replies of the model: for endpoints that support nothing else, and for "
        "proxies that close idle connections.",
        option=False,
    )
    model_timeout: float = setting(300.0, "Seconds one model call may take.", option=False, gt=0)
    model_retries: int = setting(
        5,
        "Maximum number of retries after a failed model call, if the failure can be retried.",
        option=False,
        ge=0,
        le=20,
    )
    input_cost_per_token: float | None = setting(
        None,
        "US dollars per input token, for a model whose price litellm does not know.",
        option=False,
        ge=0,
    )
    output_cost_per_token: float | None = setting(
        None,
        "US dollars per output token, for a model whose price litellm does not know.",
        option=False,
        ge=0,
    )
    fallback_models: tuple[str, ...] = setting(
        (),
        "Models that are tried in order when the one before them is down or refuses. A fallback "
        "of the same provider uses the same address and key; the key of another provider is read "
        "from its own variable (`ANTHROPIC_API_KEY`, ...).",
        option=False,
    )
    model_rules: tuple[str, ...] = setting(
        (),
        "Rules that choose another model; the first that applies wins: `service:NAME=MODEL`, "
        "`agent:NAME=MODEL`, `images=MODEL`, `context>TOKENS=MODEL`, `budget<SHARE=MODEL`.",
        option=False,
    )
    services: dict[str, ServiceSettings] = setting(
        {},
        "Models of individual services (`agent`, `condenser`, `judge`) or agents "
        "(`ReadOnlyAgent`, ...), as YAML: `{condenser: {model: anthropic/NAME}}`. See models.md.",
        option=False,
    )
    max_monthly_budget: float | None = setting(
        None,
        "Maximum cost of the runs of one repository in a calendar month (UTC) on a server, in US "
        "dollars; no limit when unset.",
        option=False,
        gt=0,
        allow_inf_nan=False,
    )
    max_daily_budget: float | None = setting(
        None,
        "Maximum cost of all runs of a server together in a day (UTC), in US dollars; no limit "
        "when unset.",
        option=False,
        gt=0,
        allow_inf_nan=False,
    )
    completions_dir: str = setting(
        "",
        "Folder in which every model call is stored complete, except for secrets, in one "
        "subfolder per run; none when empty.",
        option=False,
    )
