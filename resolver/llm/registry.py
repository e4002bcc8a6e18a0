"""From configurations to a model. A recorded run (`replay:FILE`) is opened by the caller, who
may read event logs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from resolver.errors import UsageError
from resolver.llm.base import Model, OnRetry
from resolver.llm.budget import MoneyLeft, unbounded
from resolver.llm.config import ModelConfig
from resolver.llm.fallback import OnSwitch, SwitchingModel
from resolver.llm.litellm_model import LiteLLMModel
from resolver.llm.router import Rule


@dataclass(frozen=True)
class Others:
    """Models beside the first one. `fallbacks`: in the order in which they are asked."""

    fallbacks: Sequence[str] = ()
    rules: Sequence[Rule] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys([*self.fallbacks, *(rule.model for rule in self.rules)]))


def make_model(
    config: ModelConfig,
    *,
    on_retry: OnRetry,
    sleep: Callable[[float], None],
    money_left: MoneyLeft = unbounded,
) -> Model:
    """The model that `config` names. Raises UsageError when it names none.

    on_retry: told before each new attempt. sleep: waits so many seconds; what it raises ends
    the call. money_left: US dollars that the next call may cost.
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
    """The model that `config` names, with those that the rules choose and that stand in for it.

    on_switch: told before another model is asked. share_left: of the budget, from 0 to 1.
    Raises UsageError as `make_model` does.
    """
    configs = [config, *(beside(config, name) for name in others.names if name != config.model)]
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


def beside(config: ModelConfig, name: str) -> ModelConfig:
    """The configuration of another model. At the same provider it has the same address and key;
    at another one the key is in that provider's own variable. Prices are of one model."""
    alike: dict[str, object] = {
        "model": name,
        "input_cost_per_token": None,
        "output_cost_per_token": None,
    }
    if _provider(name) != _provider(config.model):
        alike |= {"api_key": None, "base_url": None, "api_version": None}
    return config.model_copy(update=alike)


def _provider(name: str) -> str:
    return name.partition("/")[0] if "/" in name else ""
