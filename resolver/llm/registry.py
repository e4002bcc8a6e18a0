"""Creation of models from their configurations.

Recorded runs (`replay:FILE`) are opened by the caller, because this package can't read event logs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from resolver.errors import UsageError
from resolver.llm.base import CLOUDS, Model, ModelConfig, OnRetry, SetBy, api_key_variable
from resolver.llm.litellm_model import LiteLLMModel
from resolver.llm.request import MoneyLeft, unbounded
from resolver.llm.router import OnSwitch, SwitchingModel


@dataclass(frozen=True)
class OtherModels:
    """The models that a run may use in addition to its own.

    fallbacks: names of the fallbacks, in the order in which they are tried.
    """

    fallbacks: Sequence[str] = ()
    known: Sequence[ModelConfig] = ()
    """Configurations whose address and key a model of the same provider gets."""

    def config_of(self, config: ModelConfig, name: str) -> ModelConfig:
        """Return the configuration of one of these models. config: that of the run's own model."""
        for known_config in self.known:
            if known_config.model == name:
                return known_config
        same_provider = (
            known_config
            for known_config in (config, *self.known)
            if provider_of(known_config.model) == provider_of(name)
        )
        return service_models(next(same_provider, config), name, "model_options: {fallbacks: ...}")


def make_model(
    config: ModelConfig,
    *,
    on_retry: OnRetry,
    sleep: Callable[[float], None],
    money_left: MoneyLeft = unbounded,
) -> Model:
    """Return the model that `config` names. Raises UsageError if it is incomplete or invalid.

    on_retry: called before each retry.
    sleep: waits that many seconds; an exception from it ends the call.
    money_left: returns the US dollars that the next call may cost.
    """
    if not config.model.strip():
        raise UsageError(
            "no model is set", "give --model, or set LLM_MODEL (for example anthropic/NAME)"
        )
    if config.base_url is not None:
        address = urlsplit(config.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UsageError(
                f"the base URL {config.base_url!r} is not an http:// or https:// address",
                "correct --base-url or LLM_BASE_URL",
            )
    return LiteLLMModel(config, on_retry=on_retry, sleep=sleep, money_left=money_left)


def make_models(
    config: ModelConfig,
    others: OtherModels,
    *,
    on_retry: OnRetry,
    on_switch: OnSwitch,
    sleep: Callable[[float], None],
    money_left: MoneyLeft,
) -> Model:
    """Return the model that `config` names, combined with its fallbacks.

    on_switch: called before another model is asked.

    Raises UsageError as `make_model` does.
    """
    other_names = (name for name in others.fallbacks if name != config.model)
    configs = [config, *(others.config_of(config, name) for name in other_names)]
    models = {
        model_config.model: make_model(
            model_config, on_retry=on_retry, sleep=sleep, money_left=money_left
        )
        for model_config in configs
    }
    if len(models) == 1:
        return models[config.model]
    return SwitchingModel(models, config.model, others.fallbacks, on_switch=on_switch)


def service_models(config: ModelConfig, name: str, set_by: str) -> ModelConfig:
    """Return the configuration of another model, derived from `config`.

    A model of the same provider has the same address and key. For another provider the key is read
    from that provider's own variable. Prices are not inherited.

    set_by: the setting that names the model, for error messages.
    """
    changes: dict[str, object] = {
        "model": name,
        "input_cost_per_token": None,
        "output_cost_per_token": None,
        "set_by": config.set_by.model_copy(update={"model": set_by}),
    }
    provider = provider_of(name)
    base_provider = provider_of(config.model)
    if provider != base_provider:
        changes |= dict.fromkeys(("api_key", "base_url", "api_version"))
        # A region is only for models in a cloud. If the first model is not in one, the region was
        # set for this model.
        places = (name for name in config.model_extra or {} if name.startswith(("aws_", "vertex_")))
        changes |= dict.fromkeys(places) if base_provider in CLOUDS else {}
        changes["set_by"] = SetBy(model=set_by, api_key=api_key_variable(provider), base_url=set_by)
    return config.model_copy(update=changes)


def for_service(config: ModelConfig, service: str, overrides: Mapping[str, object]) -> ModelConfig:
    """Return the configuration of a service: `overrides` on top of `config`.

    A key is never sent to another address than the one it was set for.
    """
    setting = f"RESOLVER_SERVICES ({service})"
    name = str(overrides.get("model", config.model))
    service_config = service_models(config, name, setting) if name != config.model else config
    changes = dict(overrides)
    if overrides.get("base_url", service_config.base_url) != service_config.base_url:
        changes = {"api_key": None, **changes}
    setting_names = {field: setting for field in SetBy.model_fields if field in changes}
    changes["set_by"] = service_config.set_by.model_copy(update=setting_names)
    return service_config.model_copy(update=changes)


def provider_of(name: str) -> str | None:
    """Return the provider in a model's name, None if it has none."""
    return name.partition("/")[0] if "/" in name else None
