"""How a setting is declared, and the settings of the model."""

from typing import Any, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


def knob(
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


class ModelKnobs(BaseSettings):
    """Which model is asked, where and how, and which others when."""

    model: str = knob(
        "",
        "Model, as litellm names it (`anthropic/...`, `openai/...`), `replay:FILE` for the replies "
        "of an event log, or `scripted:FILE` for those of a YAML list.",
        "LLM_MODEL",
    )
    api_key: SecretStr | None = knob(
        None, "Key of the model endpoint.", "LLM_API_KEY", option=False
    )
    base_url: str | None = knob(None, "Base URL of the model endpoint.", "LLM_BASE_URL")
    api_version: str | None = knob(
        None, "API version, for Azure endpoints.", "LLM_API_VERSION", option=False
    )
    model_region: str | None = knob(
        None, "Region of the model at Bedrock or Vertex.", "AWS_REGION_NAME", option=False
    )
    model_project: str | None = knob(
        None, "Project of the model at Vertex.", "VERTEXAI_PROJECT", option=False
    )
    dialect: Literal["auto", "tools", "tags"] = knob(
        "auto", "How the model acts: native tool calls, tags in text, or what the model can do."
    )
    temperature: float | None = knob(
        None, "Sampling temperature; unset means the provider's default.", option=False, ge=0, le=2
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = knob(
        None,
        "How much the model thinks before it answers; unset means the provider's default.",
        option=False,
    )
    seed: int | None = knob(
        None, "Seed of the sampling, where the provider takes one.", option=False
    )
    stop_words: tuple[str, ...] = knob(
        (), "Words at which a reply of the model ends.", option=False
    )
    model_stream: bool = knob(
        False,
        "Have replies sent in pieces: for endpoints that answer in no other way, and for proxies "
        "that close a connection that is silent for long.",
        option=False,
    )
    model_timeout: float = knob(300.0, "Seconds one model call may take.", option=False, gt=0)
    model_retries: int = knob(
        5, "Attempts after a failed model call that may be tried again.", option=False, ge=0, le=20
    )
    input_cost_per_token: float | None = knob(
        None,
        "US dollars per input token, for a model that litellm has no price of.",
        option=False,
        ge=0,
    )
    output_cost_per_token: float | None = knob(
        None,
        "US dollars per output token, for a model that litellm has no price of.",
        option=False,
        ge=0,
    )
    fallback_models: tuple[str, ...] = knob(
        (),
        "Models that are asked in turn when the one before is down or refuses. At the same "
        "provider they have the same address and key; at another the key is in the provider's own "
        "variable (`ANTHROPIC_API_KEY`, ...).",
        option=False,
    )
    model_rules: tuple[str, ...] = knob(
        (),
        "Rules that choose another model before each call, the first that applies: "
        "`images=MODEL`, `context>TOKENS=MODEL`, `budget<SHARE=MODEL`.",
        option=False,
    )
    completions_dir: str = knob(
        "",
        "Folder for every call to a model, whole but without secrets, a folder a run; none when "
        "empty.",
        option=False,
    )
