"""Settings of models: connection, parameters, fallbacks and routing rules."""

from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from resolver.config.declaration import ActionInput, SettingGroup, StructuredSetting, part, setting
from resolver.config.documentation import DOCS

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class ModelOptions(StructuredSetting):
    """Parameters of the calls of a model. `resolver.llm.base` has the default of each."""

    api_version: str | None = part(None, "API version, for Azure endpoints.", "LLM_API_VERSION")
    region: str | None = part(None, "Region of a model on Bedrock or Vertex.", "AWS_REGION_NAME")
    project: str | None = part(None, "Project of a model on Vertex.", "VERTEXAI_PROJECT")
    temperature: float | None = part(
        None, "Sampling temperature, 0 to 2; the provider's default when unset.", ge=0, le=2
    )
    reasoning_effort: Effort | None = part(
        None,
        "How much the model reasons before it answers: `none`, `minimal`, `low`, `medium`, `high` "
        "or `xhigh`; the provider's default when unset.",
    )
    seed: int | None = part(None, "Sampling seed, for providers that accept one.")
    stop: tuple[str, ...] | None = part(
        None, "List of stop sequences. A reply ends at the first of them."
    )
    stream: bool | None = part(
        None,
        "Stream the replies: for endpoints that support nothing else, and for proxies that close "
        "idle connections. Off when unset.",
    )
    timeout: float | None = part(None, "Seconds one call may take; 300 when unset.", gt=0)
    retries: int | None = part(
        None,
        "Maximum number of retries after a failed call, if the failure can be retried; 5 when "
        "unset.",
        ge=0,
        le=20,
    )
    max_output_tokens: int | None = part(
        None,
        "Maximum number of tokens of one reply; the provider's limit when unset.",
        gt=0,
    )
    input_cost_per_token: float | None = part(
        None, "US dollars per input token, for a model whose price litellm does not know.", ge=0
    )
    output_cost_per_token: float | None = part(
        None, "US dollars per output token, for a model whose price litellm does not know.", ge=0
    )


class ServiceSettings(ModelOptions):
    """Model settings of one service or agent. None inherits the value of the run's own model.

    A plain string instead of a mapping is the name of the model.
    """

    model: str | None = Field(default=None, min_length=1)
    api_key: SecretStr | None = None
    base_url: str | None = None

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


class ModelSettings(SettingGroup):
    """Settings of the models: connection, parameters, fallbacks and routing rules."""

    title: ClassVar[str] = "Model"
    when: ClassVar[str] = (
        "Change these to choose a model, its endpoint and its parameters, to name models that "
        "stand in for it, or to use other models for single services."
    )

    model: str = setting(
        "",
        "Model, as litellm names it: `anthropic/NAME`, `openai/NAME`. For tests, `replay:FILE` "
        "takes the replies from an event log and `scripted:FILE` from a YAML list.",
        "LLM_MODEL",
        action_input=True,
    )
    api_key: SecretStr | None = setting(
        None,
        "API key of the model's provider. When unset, the provider's own variable is read "
        "(`ANTHROPIC_API_KEY`, ...). It never enters the sandbox.",
        "LLM_API_KEY",
        option=False,
        action_input=ActionInput("llm-api-key"),
    )
    base_url: str | None = setting(
        None,
        "Base URL of the model endpoint. Set it for a proxy, a gateway or a server of your own; "
        "the provider's own address when unset.",
        "LLM_BASE_URL",
        action_input=ActionInput("llm-base-url"),
    )
    dialect: Literal["auto", "tools", "tags"] = setting(
        "auto",
        "How the model calls tools: native tool calls (`tools`), tags in text (`tags`), or "
        "whichever litellm says that the model supports (`auto`). Set it for a model that litellm "
        "does not know.",
    )
    model_options: ModelOptions = setting(
        ModelOptions(),
        "Parameters of the model, named as in `services`. Parts that are not given keep their "
        "defaults.",
        option=False,
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
        "Models of individual services (`agent`, `condenser`) or "
        "agents (`ReadOnlyAgent`, ...), as YAML: `{condenser: {model: anthropic/NAME}}`. "
        f"See {DOCS}/how-to/models.md.",
        option=False,
    )
