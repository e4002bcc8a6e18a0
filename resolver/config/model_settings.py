"""Settings of models: connection, parameters and fallbacks."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from resolver.config.declaration import SettingGroup, setting
from resolver.config.documentation import DOCS

RESERVED_OPTIONS = frozenset(
    {"model", "api_key", "api_base", "base_url", "messages", "tools", "dialect", "fallbacks"}
)
"""Parameters of a call that are set elsewhere, or that Resolver sets."""

_CREDENTIAL = re.compile(r"(key|secret|credentials?|password|token|headers)$")


class CallOptions(BaseModel):
    """Parameters of the calls of a model, named as litellm names them.

    Those that Resolver uses itself are fields. All others are passed on as they are.
    """

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())

    timeout: float | None = Field(default=None, gt=0)
    num_retries: int | None = Field(default=None, ge=0, le=20)
    max_tokens: int | None = Field(default=None, gt=0)
    stream: bool | None = None
    input_cost_per_token: float | None = Field(default=None, ge=0)
    output_cost_per_token: float | None = Field(default=None, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, value: Any) -> Any:
        if not isinstance(value, (Mapping, cls)):
            raise ValueError("it is a mapping of parameters, like {temperature: 0}")
        return value

    @model_validator(mode="after")
    def _others_are_plain(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            values = value if isinstance(value, list) else [value]
            if name in RESERVED_OPTIONS or _CREDENTIAL.search(name):
                raise ValueError(f"{name} can't be set here")
            if not all(isinstance(item, str | int | float | None) for item in values):
                raise ValueError(f"{name} is not a text, a number or a list of them")
        return self


class ModelOptions(CallOptions):
    """Options of the run's own model.

    dialect: how the model calls tools; `auto` is what litellm says that it supports.
    fallbacks: models that are tried in order when the one before them is down or refuses.
    """

    dialect: Literal["auto", "tools", "tags"] = "auto"
    fallbacks: tuple[str, ...] = ()

    @property
    def call_options(self) -> dict[str, Any]:
        """The parameters of calls that are set."""
        own = {"dialect", "fallbacks"}
        return {name: value for name, value in self if name not in own and value is not None}


class ServiceSettings(CallOptions):
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
    """Settings of the models: connection, parameters and fallbacks."""

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
        action_input="llm-api-key",
    )
    base_url: str | None = setting(
        None,
        "Base URL of the model endpoint. Set it for a proxy, a gateway or a server of your own; "
        "the provider's own address when unset.",
        "LLM_BASE_URL",
        action_input="llm-base-url",
    )
    model_options: ModelOptions = setting(
        ModelOptions(),
        "Parameters of the model's calls, as YAML with litellm's own names: "
        "`{temperature: 0, reasoning_effort: high}`. Resolver itself uses `timeout` (300 seconds "
        "for a call), `num_retries` (5 after a failure), `max_tokens` (of one reply), `stream`, "
        "and `input_cost_per_token` and `output_cost_per_token` for a model whose price litellm "
        "does not know. `fallbacks` are models that are tried in order when the one before them is "
        "down or refuses. `dialect` is how a model that litellm does not know calls tools: `tools` "
        f"or `tags`. All others are passed on. See {DOCS}/how-to/models.md.",
        option=False,
    )
    services: dict[str, ServiceSettings] = setting(
        {},
        "Models of individual services (`agent`, `condenser`) or "
        "agents (`ReadOnlyAgent`, ...), as YAML: `{condenser: {model: anthropic/NAME}}`. "
        f"See {DOCS}/how-to/models.md.",
        option=False,
    )
