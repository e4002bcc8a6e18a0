"""Builds the models of a run: the model of each service and each agent, and the logging of its
calls.

A service is a part of Resolver that calls models: the agent, the condenser.
All services share the budget of the run. The model is checked before the sandbox of the run starts;
the duration and cost of the check are logged.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from resolver.config.settings import Settings
from resolver.errors import ModelAuthError, ModelError, UsageError
from resolver.events.lifecycle import (
    AGENT,
    ModelReplied,
    ModelRetried,
    ModelSwitched,
    ServiceReplied,
    SystemPrompt,
)
from resolver.events.log import Event, read_log
from resolver.events.run_log import RunLog, reply_in
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.llm.base import Model, ModelConfig, RecordedModel
from resolver.llm.interruptible import Interruptible, InterruptibleModel, ModelCalls
from resolver.llm.library import preload_litellm
from resolver.llm.preflight import check_model
from resolver.llm.registry import OtherModels, for_service, make_model, make_models, service_models
from resolver.llm.replay import ReplayModel, scripted_models
from resolver.models.run import Completion

SERVICES = (AGENT, "condenser")
"""The services for which settings can name a model."""

REPLAY = "replay:"
SCRIPTED = "scripted:"


def recording_of(settings: Settings) -> list[Event]:
    """Return the events of the log that `replay:FILE` names; an empty list for a live model."""
    if not settings.model.startswith(REPLAY):
        return []
    recording = list(read_log(Path(settings.model.removeprefix(REPLAY))))
    if not any(isinstance(event, ModelReplied) for event in recording):
        raise UsageError(
            f"{settings.model.removeprefix(REPLAY)} contains no model reply",
            "use the events.jsonl of an earlier run",
        )
    return recording


def preload_models(settings: Settings, start: Callable[[], object] = preload_litellm) -> None:
    """Start to load litellm in the background for a live model. A recording and a script need
    nothing, but raise UsageError if the file can't be used."""
    if settings.model.startswith(SCRIPTED):
        scripted_models(Path(settings.model.removeprefix(SCRIPTED)), settings.model, AGENT)
    elif not settings.model.startswith(REPLAY):
        start()


def model_name(settings: Settings) -> str:
    """Return the name of the model for a person, without the folder of a recording or a script."""
    for kind in (REPLAY, SCRIPTED):
        if settings.model.startswith(kind):
            return kind + Path(settings.model.removeprefix(kind)).name
    return settings.model


def model_config(settings: Settings) -> ModelConfig:
    """Return the configuration of the settings' main model."""
    options = settings.model_options.call_options
    return ModelConfig(
        model=settings.model, api_key=settings.api_key, base_url=settings.base_url, **options
    )


def service_config(
    settings: Settings, service: str, agent: str | None = None, model: str | None = None
) -> tuple[ModelConfig, OtherModels]:
    """Return the configuration of a service's model, and the models that may replace it.

    In order of precedence: the `services` setting for the agent's name, the `services` setting for
    the service, the `model` of the agent's definition, the main model.
    """
    main = model_config(settings)
    config = service_models(main, model, f"model of the agent {agent}") if model else main
    for name in filter(None, (service, agent)):
        if name in settings.services:
            overrides = {k: v for k, v in settings.services[name] if v is not None}
            config = for_service(config, name, overrides)
    return config, OtherModels(settings.model_options.fallbacks, known=(main,))


class ModelOpener:
    """Opens the models of the run and of its delegates, each for the stream that it logs to.

    recording: the replies of a recording, or those of a script, are returned in their order for
        each service, whichever stream they are requested on.
    state: that of the run, for the remaining budget.
    interruptible: for calls of a live model.
    """

    def __init__(
        self,
        settings: Settings,
        recording: Sequence[Event],
        state: State,
        interruptible: Interruptible,
    ) -> None:
        self._settings = settings
        self._find_recorded = _recorded_models(settings, recording) if recording else None
        self._scripts: dict[str, Mapping[str, Model]] = {}
        self._state = state
        self._interruptible = interruptible

    def __call__(
        self,
        stream: EventStream,
        service: str = AGENT,
        *,
        agent: str | None = None,
        model: str | None = None,
    ) -> Model:
        """Return the model of a service, which logs its replies, retries and switches.

        service: one of SERVICES. agent: name of the agent, for the agent service. model: the model
        that its definition names; a model that the operator has set for the agent takes precedence.
        Raises UsageError.
        """
        config, others = service_config(self._settings, service, agent, model)
        calls = ModelCalls(self._interruptible)

        def on_reply(completion: Completion) -> None:
            if service == AGENT:
                stream.add(ModelReplied(completion=completion))
            else:
                stream.add(ServiceReplied(service=service, completion=completion))

        def on_retry(attempt: int, wait: float, reason: str) -> None:
            calls.require_wanted()
            stream.add(ModelRetried(attempt=attempt, wait=wait, reason=reason, service=service))

        def on_switch(from_model: str, to_model: str, reason: str) -> None:
            calls.require_wanted()
            switched = ModelSwitched(
                from_model=from_model, to_model=to_model, reason=reason, service=service
            )
            stream.add(switched)

        if self._find_recorded is not None:
            return RecordedModel(self._find_recorded(service), on_reply)
        if config.model.startswith(SCRIPTED):
            return RecordedModel(self._scripted(config, service, agent), on_reply)
        live = make_models(
            config,
            others,
            on_retry=on_retry,
            on_switch=on_switch,
            sleep=calls.sleep,
            money_left=lambda: self._state.limits.max_budget - self._state.priced,
        )
        return RecordedModel(InterruptibleModel(live, calls), on_reply)

    def _scripted(self, config: ModelConfig, service: str, agent: str | None) -> Model:
        """Return the model whose replies a script has for the agent or the service."""
        path = Path(config.model.removeprefix(SCRIPTED))
        if config.model not in self._scripts:
            script_service = AGENT if config.model == self._settings.model else service
            self._scripts[config.model] = scripted_models(
                path, SCRIPTED + path.name, script_service
            )
        script = self._scripts[config.model]
        scripted = script.get(agent or service) or script.get(service)
        return scripted or ReplayModel((), name=SCRIPTED + path.name, supports_tools=False)


def _recorded_models(settings: Settings, recording: Sequence[Event]) -> Callable[[str], Model]:
    """Return the factory of models that repeat the recorded replies of a service."""
    replies: dict[str, list[Completion | ModelError]] = {}
    for event in recording:
        reply = reply_in(event)
        if reply is not None:
            replies.setdefault(reply[0], []).append(reply[1])
    prompts = [e for e in recording if isinstance(e, SystemPrompt)]
    supports_tools = not prompts or prompts[0].dialect == "tools"
    models: dict[str, Model] = {}

    def recorded(service: str) -> Model:
        if service not in models:
            service_replies = replies.get(service, ())
            models[service] = ReplayModel(
                service_replies, name=settings.model, supports_tools=supports_tools
            )
        return models[service]

    return recorded


CHECK = "check"
"""Name of the service that checks whether a model is available."""


def check_run_model(settings: Settings, agent: str, model: str | None, log: RunLog) -> None:
    """Raise ModelError if the model of `agent` can't be reached, or rejects the key or the name.

    If the settings have fallback models, only a rejected key is an error. model: the model that the
    agent's definition names, None for none. A recording and a script need no check, and neither
    does a run whose work has ended.
    """
    config, others = service_config(settings, AGENT, agent, model)
    if log.is_done or config.model.startswith((REPLAY, SCRIPTED)):
        return

    def on_retry(attempt: int, wait: float, reason: str) -> None:
        log.stream.add(ModelRetried(attempt=attempt, wait=wait, reason=reason, service=CHECK))

    def on_reply(completion: Completion) -> None:
        log.stream.add(ServiceReplied(service=CHECK, completion=completion))

    def ask(config: ModelConfig) -> Model:
        return RecordedModel(make_model(config, on_retry=on_retry, sleep=time.sleep), on_reply)

    started = time.monotonic()
    try:
        confirmation = check_model(
            config, make_short_model=ask, on_retry=on_retry, sleep=time.sleep
        )
    except ModelError as error:
        if isinstance(error, ModelAuthError) or not others.fallbacks:
            raise
        return
    if confirmation:
        log.stage("model", confirmation, time.monotonic() - started)
