"""Checks the model of a run before its sandbox starts, and logs the duration and cost of the
check."""

import time
from collections.abc import Mapping

from resolver.config.settings import Settings
from resolver.errors import ModelAuthError, ModelError
from resolver.events.lifecycle import AGENT, ModelRetried, ServiceReplied
from resolver.events.run_log import RunLog
from resolver.llm.base import Model, ModelConfig, RecordedModel
from resolver.llm.preflight import check_model
from resolver.llm.registry import make_model
from resolver.models.run import Completion
from resolver.runs.wiring.models import REPLAY, SCRIPTED, service_config

CHECK = "check"
"""Name of the service that checks whether a model is available."""


def check_run_model(
    settings: Settings, agent: str, model: str, environment: Mapping[str, str], log: RunLog
) -> None:
    """Raise ModelError if the model of `agent` can't be reached, or rejects the key or the name.

    If the settings have fallback models, only a rejected key is an error. model: the model that the
    agent's definition names, "" for none. A recording and a script need no check, and neither does
    a run whose work has ended.
    """
    config, others = service_config(settings, AGENT, agent, model)
    if log.is_done or config.model.startswith((REPLAY, SCRIPTED)):
        return

    def on_retry(attempt: int, wait: float, reason: str) -> None:
        log.stream.add(ModelRetried(attempt=attempt, wait=wait, reason=reason, service=CHECK))

    def on_reply(completion: Completion) -> None:
        log.stream.add(ServiceReplied(service=CHECK, completion=completion))

    def ask(one: ModelConfig) -> Model:
        return RecordedModel(make_model(one, on_retry=on_retry, sleep=time.sleep), on_reply)

    started = time.monotonic()
    try:
        found = check_model(config, environment, ask=ask, on_retry=on_retry, sleep=time.sleep)
    except ModelError as error:
        if isinstance(error, ModelAuthError) or not others.fallbacks:
            raise
        return
    if found:
        log.stage("model", found, time.monotonic() - started)
