"""What the agent of a log is started with: agent, dialect and recording, and its first message."""

from types import SimpleNamespace
from typing import Any

from resolver.config.settings import load_settings
from resolver.events.lifecycle import ModelReplied, ServiceReplied, SystemPrompt
from resolver.events.log import Event
from resolver.events.state import State
from resolver.models.run import Completion
from resolver.runs.execute import _restore_start
from tests.trace import sample

OPENING = sample.started().model_copy(update={"id": 0, "agent": "counter"})


def replied(id: int, text: str) -> ModelReplied:
    return ModelReplied(id=id, completion=Completion(model="m", text=text))


RECORDING: tuple[Event, ...] = (
    OPENING,
    replied(1, "first"),
    ServiceReplied(id=2, service="condenser", completion=Completion(model="m")),
    replied(3, "second"),
)


def restored(*events: Event) -> tuple[Any, list[str]]:
    """Return the settings that the log continues with, and the kinds of what is left to replay."""
    environment = {"RESOLVER_MODEL_OPTIONS": "{dialect: tools}"}
    settings = load_settings({"agent": "CodeActAgent"}, environment)
    prepared = SimpleNamespace(settings=settings)
    request: Any = SimpleNamespace(prepared=prepared, recording=RECORDING)
    state = State()
    for event in events:
        state.apply(event)
    found, remaining = _restore_start(request, OPENING, state)
    return found, [f"{event.id} {event.kind}" for event in remaining]


def test_a_new_log_has_the_agent_of_its_first_event_and_the_whole_recording() -> None:
    settings, remaining = restored(OPENING)
    assert (settings.agent, settings.model_options.dialect) == ("counter", "tools")
    assert len(remaining) == len(RECORDING)


def test_a_resumed_log_keeps_agent_and_dialect_and_skips_the_replies_that_it_has() -> None:
    prompt = SystemPrompt(id=1, content="", dialect="tags")
    settings, remaining = restored(OPENING, prompt, replied(2, "first"))
    assert (settings.agent, settings.model_options.dialect) == ("counter", "tags")
    assert remaining == ["0 run_started", "2 service_replied", "3 model_replied"]
