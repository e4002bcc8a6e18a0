"""Creates the condensers of a run from the settings: one for each agent's log."""

from collections.abc import Sequence
from functools import cache

from resolver.config.condenser_names import parse_condenser
from resolver.config.settings import Settings
from resolver.controller.controller import Condensers, CondensingView
from resolver.controller.delegation import reply_in
from resolver.events.lifecycle import AGENT, RunStarted, Warned
from resolver.events.log import Event
from resolver.events.stream import EventStream
from resolver.llm.config import ModelConfig
from resolver.llm.window import context_window
from resolver.memory.condensers.base import SizeBound
from resolver.memory.condensers.model_call import Asker
from resolver.memory.condensers.registry import Condensing, Parts, make_condenser
from resolver.memory.condensers.view import SERVICE
from resolver.runs.wiring.models import REPLAY, SCRIPTED, ModelOn, has_own_model, service_config


def open_condensers(
    settings: Settings, model_on: ModelOn, recording: Sequence[Event]
) -> Condensers:
    """Return the factory of condensers, for the run's own agent and its delegates.

    recording: events of the run that is replayed, whose condenser settings are then used.
    """
    config = service_config(settings, AGENT, settings.agent)[0]
    name, most = settings.condenser.stages, settings.condenser.max_tokens
    writes = has_own_model(settings, SERVICE)
    begun = next((event for event in recording if isinstance(event, RunStarted)), None)
    if begun is not None:
        config = config.model_copy(update={"model": begun.model, "base_url": None})
        name, most = begun.condenser or name, begun.condenser_max_tokens
        writes = any((reply_in(event) or ("",))[0] == SERVICE for event in recording)
    stages = parse_condenser(name)
    bound = SizeBound(most, cache(lambda: _window(config)))

    def condenser_of(stream: EventStream) -> CondensingView:
        def warn(about: str, what: str) -> None:
            stream.add(Warned(about=about, message=what))

        def ask() -> Asker:
            return Asker(model_on(stream, SERVICE), warn)

        return Condensing(make_condenser(stages, Parts(bound, ask, writes)))

    return condenser_of


def _window(config: ModelConfig) -> int | None:
    """Return the context window of a live model in tokens; None for a recording or a script, or if
    it is unknown."""
    written = config.model.startswith((REPLAY, SCRIPTED))
    return None if written else context_window(config)
