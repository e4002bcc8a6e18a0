"""Creation of models from their configurations.

Recorded runs (`replay:FILE`) are opened by the caller, because this package can't read event logs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from resolver.errors import UsageError
from resolver.llm.base import CLOUDS, Model, ModelConfig, OnRetry, SetBy, own_variable
from resolver.llm.litellm_model import LiteLLMModel
from resolver.llm.request import MoneyLeft, unbounded
from resolver.llm.router import OnSwitch, RoutingRule, SwitchingModel


@dataclass(frozen=True)
class Others:
    """The models that a run may use in addition to its own.

    fallbacks: names of the fallbacks, in the order in which they are tried.
    rules: the routing rules, each with the name of a model.
    """

    fallbacks: Sequence[str] = ()
    rules: Sequence[RoutingRule] = ()
    known: Sequence[ModelConfig] = ()
    """Configurations whose address and key a model of the same provider gets."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all these models, without duplicates."""
        return tuple(dict.fromkeys([*self.fallbacks, *(rule.model for rule in self.rules)]))

    def beside(self, config: ModelConfig, name: str) -> ModelConfig:
        """Return the configuration of one of these models. config: that of the run's own model."""
        for each in self.known:
            if each.model == name:
                return each
        alike = (
            each for each in (config, *self.known) if provider_of(each.model) == provider_of(name)
        )
        fallback = name in self.fallbacks
        setting = "RESOLVER_FALLBACK_MODELS" if fallback else "RESOLVER_MODEL_RULES"
        return service_models(next(alike, config), name, setting)


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
    others: Others,
    *,
    on_retry: OnRetry,
    on_switch: OnSwitch,
    sleep: Callable[[float], None],
    money_left: MoneyLeft,
    share_left: Callable[[], float],
) -> Model:
    """Return the model that `config` names, combined with its fallbacks and those of the rules.

    on_switch: called before another model is asked.
    share_left: returns the share of the budget that is left, from 0 to 1.

    Raises UsageError as `make_model` does.
    """
    further = (name for name in others.names if name != config.model)
    configs = [config, *(others.beside(config, name) for name in further)]
    models = {
        one.model: make_model(one, on_retry=on_retry, sleep=sleep, money_left=money_left)
        for one in configs
    }
    if len(models) == 1:
        return models[config.model]
    return SwitchingModel(
        models,
        config.model,
        others.fallbacks,
        others.rules,
        on_switch=on_switch,
        share_left=share_left,
    )


def service_models(config: ModelConfig, name: str, set_by: str) -> ModelConfig:
    """Return the configuration of another model, derived from `config`.

    A model of the same provider has the same address and key. For another provider the key is read
    from that provider's own variable. Prices are not inherited.

    set_by: the setting that names the model, for error messages.
    """
    alike: dict[str, object] = {
        "model": name,
        "input_cost_per_token": None,
        "output_cost_per_token": None,
        "set_by": config.set_by.model_copy(update={"model": set_by}),
    }
    provider = provider_of(name)
    own = provider_of(config.model)
    if provider != own:
        alike |= dict.fromkeys(("api_key", "base_url", "api_version"))
        # A region is only for models in a cloud. If the first model is not in one, the region was
        # set for this model.
        alike |= dict.fromkeys(("region", "project")) if own in CLOUDS else {}
        alike["set_by"] = SetBy(model=set_by, api_key=own_variable(provider), base_url=set_by)
    return config.model_copy(update=alike)


def for_service(config: ModelConfig, service: str, given: Mapping[str, object]) -> ModelConfig:
    """Return the configuration of a service: `given` on top of `config`.

    A key is never sent to another address than the one it was set for.
    """
    setting = f"RESOLVER_SERVICES ({service})"
    name = str(given.get("model", config.model))
    other = service_models(config, name, setting) if name != config.model else config
    changes = dict(given)
    if given.get("base_url", other.base_url) != other.base_url:
        changes = {"api_key": None, **changes}
    named = {field: setting for field in SetBy.model_fields if field in changes}
    changes["set_by"] = other.set_by.model_copy(update=named)
    return other.model_copy(update=changes)


def provider_of(name: str) -> str:
    """Return the provider in a model's name, "" if it has none."""
    return name.partition("/")[0] if "/" in name else ""
