"""A run in memory, new or from the events of an earlier one, that counts all calls."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from resolver.agents.base import Agent
from resolver.agents.codeact import CodeActAgent
from resolver.agents.definitions import AvailableTools
from resolver.agents.registry import make_agent
from resolver.controller.control import Control
from resolver.controller.controller import (
    AgentController,
    Condensers,
    ControllerParts,
)
from resolver.controller.delegation import Delegates
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.actions import SandboxAction
from resolver.events.base import EventBase, Source
from resolver.events.lifecycle import (
    Condensation,
    ConfirmationAnswered,
    DelegateEvent,
    LimitsExtended,
    ModelReplied,
)
from resolver.events.log import ACTION_TYPES, OBSERVATION_TYPES, Event, parse_logged_event
from resolver.events.observations import Observation
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.llm.base import RecordedModel
from resolver.llm.replay import ReplayModel
from resolver.memory.condensers.rules import Pipeline
from resolver.memory.condensers.view import LogCondenser
from resolver.models.run import Completion, Outcome, RequestedToolCall, RunLimits, RunState

START = datetime(2026, 1, 1, tzinfo=UTC)


class Sandbox:
    """Answers each command with a given output, and counts the calls."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def execute(self, action: SandboxAction) -> Observation:
        if isinstance(action, a.FileWrite):
            self.done.append(action.path)
            return o.FileWriteResult(path=action.path)
        command = str(getattr(action, "command", action.kind))
        self.done.append(command)
        return o.CmdOutput(content=f"did {command}", exit_code=0)


def reply(*calls: tuple[str, dict[str, object]], text: str = "") -> Completion:
    """Return a model's reply with these tool calls, which costs ten cents."""
    requested = tuple(
        RequestedToolCall(id=f"c{i}", name=name, arguments=json.dumps(arguments))
        for i, (name, arguments) in enumerate(calls)
    )
    return Completion(model="m", text=text, tool_calls=requested, cost=0.1)


def bash(*commands: str) -> Completion:
    return reply(*(("execute_bash", {"command": command}) for command in commands))


def finish(message: str = "done") -> Completion:
    return reply(("finish", {"title": "Do it", "message": message}))


def hand_on(task: str = "look") -> Completion:
    return reply(("delegate", {"agent": "CodeActAgent", "task": task}))


def all_events(events: Iterable[Event]) -> list[Event]:
    """Return the events of all levels in their order."""
    found: list[Event] = []
    for event in events:
        found += (
            all_events([parse_logged_event(event.event)])
            if isinstance(event, DelegateEvent)
            else [event]
        )
    return found


def recorded_content(
    events: Iterable[Event], without_states: bool = False
) -> list[tuple[str, str]]:
    """Return what was done, observed and decided at all levels, without times and ids."""
    kept = (*ACTION_TYPES, *OBSERVATION_TYPES, Condensation, ConfirmationAnswered)
    left_out = {"id", "timestamp", "cause", "reply", "action"}
    return [
        (event.kind, event.model_dump_json(exclude=left_out))
        for event in all_events(events)
        if isinstance(event, kept)
        and not (without_states and isinstance(event, o.AgentStateChanged))
    ]


class Scenario:
    """One run. `earlier`: the events of an interrupted log, which the run continues."""

    def __init__(
        self,
        *replies: Completion,
        earlier: Sequence[Event] = (),
        limits: RunLimits | None = None,
        seconds: float = 0.001,
        redact: Callable[[Event], Event] | None = None,
    ) -> None:
        ticks = count(len(earlier))
        self.now: Callable[[], datetime] = lambda: START + timedelta(seconds=seconds * next(ticks))
        self.store = MemoryStore()
        for event in earlier:
            self.store.append(event)
        self.state = State.fold(self.store)
        self.stream = EventStream(self.store, redact, self.now)
        self.stream.subscribe("state", self.state.apply, essential=True)
        self.control = Control()
        self.sandbox = Sandbox()
        given = sum(isinstance(e, ModelReplied) for e in all_events(earlier))
        self.model = ReplayModel(replies[given:], name="m")
        if limits is not None and not earlier:
            self.stream.add(LimitsExtended(limits=limits))

    def model_on(self, stream: EventStream) -> RecordedModel:
        def record(completion: Completion) -> None:
            stream.add(ModelReplied(completion=completion.model_copy(update={"cost": 0.1})))

        return RecordedModel(self.model, record)

    def delegate(self, name: str, stream: EventStream, *, may_delegate: bool) -> Agent:
        return make_agent(
            name, self.model_on(stream), "tools", AvailableTools(delegates=may_delegate)
        )

    def go(
        self,
        agent: Agent | None = None,
        delegates: Delegates | None = None,
        condensers: Condensers | None = None,
        **parts: Any,
    ) -> Outcome:
        """Execute the run; without `agent`, with a CodeActAgent on the replies.

        parts: fields of `ControllerParts`.
        """
        if agent is None:
            model = self.model_on(self.stream)
            agent = CodeActAgent(model, "tools", AvailableTools(delegates=True))
        opening = (agent.system_prompt(), a.Message(content="fix it", source=Source.USER))
        if self.state.run_state is RunState.LOADING:
            missing = [e for e in opening if type(e) not in {type(x) for x in self.store}]
            for event in missing:
                self.stream.add(event)
        shared = ControllerParts(
            self.sandbox,
            condensers or (lambda _: LogCondenser(Pipeline())),
            self.now,
            control=self.control,
            delegates=delegates,
            **{"max_pause": 10.0, **parts},
        )
        return AgentController(agent, self.stream, self.state, shared).run()

    def of(self, kind: type[EventBase]) -> list:
        """Return the run's own events of a kind."""
        return [event for event in self.store if isinstance(event, kind)]

    def nested(self, kind: type[EventBase]) -> list:
        """Return the events of a kind at all levels."""
        return [event for event in all_events(self.store) if isinstance(event, kind)]
