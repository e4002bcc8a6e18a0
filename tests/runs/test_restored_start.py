"""What the agent of a log is started with: agent, dialect and recording, and its first message."""

from types import SimpleNamespace
from typing import Any

import pytest

from resolver.agents.definitions import Definitions
from resolver.config.settings import load_settings
from resolver.events.lifecycle import ModelReplied, ServiceReplied, SystemPrompt
from resolver.events.log import Event
from resolver.events.state import State
from resolver.models.pull_request import PullRequestContext
from resolver.models.repository import Conventions
from resolver.models.run import Completion
from resolver.runs.execute import _render_task_prompt, _restore_start
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


@pytest.mark.parametrize(
    ("agent", "asked"),
    [
        ("CodeActAgent", "Work on pull request #12 "),
        ("ReadOnlyAgent", "You are asked about pull request #12 "),
        ("ReviewerAgent", "Review pull request #12 "),
    ],
)
def test_the_first_message_on_a_pull_request_has_its_diff_and_what_its_agent_is_to_do(
    agent: str, asked: str
) -> None:
    trigger = OPENING.task.trigger.model_copy(update={"number": 12, "is_pull_request": True})
    pull = PullRequestContext(number=12, head="a" * 40, base_branch="main")
    task = OPENING.task.model_copy(update={"trigger": trigger, "pull": pull})
    workspace = SimpleNamespace(base="a" * 40, pull_diff=lambda show: show("    10 +x\u200b = 1"))
    prepared: Any = SimpleNamespace(
        task=task, conventions=Conventions(), agents=Definitions(), workspace=workspace
    )
    prompt = _render_task_prompt(
        prepared, load_settings({"agent": agent}, {}), "/workspace", State()
    )
    assert prompt.startswith(asked)
    assert "    10 +x[U+200B] = 1" in prompt
