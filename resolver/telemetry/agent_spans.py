"""Turns the events of one agent's log into spans: its invocations, model calls and tools.

The log is the only source: times are those of the events, and a call of a model starts as long
before its reply as the reply says. A delegate has spans of the same kinds below the span of the
tool that it was started with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.log import Event, parse_logged_event
from resolver.models.run import FINAL_STATES, Completion, RunState
from resolver.telemetry import conventions as c
from resolver.telemetry.attributes import (
    FAILED_STATES,
    add_completed_span,
    chat_attributes,
    error_of,
    is_tool,
    tool_attributes,
    tool_name,
)
from resolver.telemetry.content import ContentWriter, Part
from resolver.telemetry.span import AttributeValue, RunSpan


@dataclass(frozen=True)
class _OpenTool:
    """An action that has no result yet, and its span."""

    span: RunSpan
    action: ActionBase


class AgentSpans:
    """A subscriber that keeps the spans of one agent.

    parent: returns the span that invocations of the agent belong to at that moment.
    agent: name of the agent; "" to take it from the first event of the log.
    conversation: id of the run that began the log; "" to take it from there, too.
    content: writes the attributes with prompts, replies and outputs; None to leave them out.
    """

    def __init__(
        self,
        parent: Callable[[], RunSpan],
        agent: str = "",
        conversation: str = "",
        content: ContentWriter | None = None,
    ) -> None:
        self._parent = parent
        self._agent = agent
        self._model = ""
        self._conversation = conversation
        self._content = content
        self._invocation: RunSpan | None = None
        self._instructions = ""
        self._new_messages: list[Part] = []
        self._retries: list[life.ModelRetried] = []
        self._tools: dict[int, _OpenTool] = {}
        self._earlier_actions: dict[int, ActionBase] = {}
        self._delegates: dict[int, AgentSpans] = {}
        self._busy_until: datetime | None = None
        self._iterations = 0

    def take_over(self, events: Sequence[Event]) -> None:
        """Read the events that a resumed log already has. No spans are made from them."""
        for event in events:
            match event:
                case life.RunStarted():
                    self._read_opening(event)
                case life.SystemPrompt():
                    self._instructions = event.content
                case ActionBase() if is_tool(event):
                    self._earlier_actions[event.id] = event
                case ObservationBase():
                    self._earlier_actions.pop(event.cause if event.cause is not None else -1, None)

    def __call__(self, event: Event) -> None:
        """Start or end the spans that the event stands for."""
        match event:
            case life.RunStarted():
                self._read_opening(event)
            case life.SystemPrompt():
                self._instructions = event.content
            case life.ModelReplied():
                self._iterations += 1
                self._add_chat(event, event.completion, life.AGENT)
            case life.ServiceReplied():
                self._add_chat(event, event.completion, event.service)
            case life.ModelRetried():
                self._retries.append(event)
            case life.DelegateEvent():
                self._delegate(event)(parse_logged_event(event.event))
            case life.StageCompleted() | life.CheckExecuted():
                add_completed_span(self._parent(), event)
            case o.AgentStateChanged():
                self._change_state(event)
            case a.Message(source=Source.USER):
                self._add_message(event)
            case ActionBase() if is_tool(event):
                self._start_tool(event, event.timestamp)
            case ObservationBase() if event.cause is not None:
                self._end_tool(event, event.cause)
            case _:
                self._add_note(event)

    def close(self, at: datetime) -> None:
        """End the spans that are still open, because the process ends here."""
        for delegate in self._delegates.values():
            delegate.close(at)
        for tool in self._tools.values():
            tool.span.end(at)
        self._tools.clear()
        if self._invocation is not None:
            self._invocation.end(at)
            self._invocation = None

    def _read_opening(self, event: life.RunStarted) -> None:
        self._agent = self._agent or event.agent
        self._model = event.model
        self._conversation = self._conversation or event.run

    def _invoke(self, at: datetime) -> RunSpan:
        """Return the span of the present invocation; start it if there is none."""
        if self._invocation is None:
            attributes: dict[str, AttributeValue] = {
                c.OPERATION: c.INVOKE_AGENT,
                c.AGENT_NAME: self._agent,
                c.CONVERSATION: self._conversation,
            }
            if self._model:
                attributes[c.REQUEST_MODEL] = self._model
            if self._content is not None and self._instructions:
                attributes[c.SYSTEM_INSTRUCTIONS] = self._content.instructions(self._instructions)
            if self._content is not None and self._new_messages:
                attributes[c.INPUT_MESSAGES] = self._content.messages(self._new_messages)
            name = f"{c.INVOKE_AGENT} {self._agent}".strip()
            self._invocation = self._parent().start_child(name, at, attributes)
            self._iterations = 0
            self._busy_until = at
        return self._invocation

    def _change_state(self, event: o.AgentStateChanged) -> None:
        if event.state is RunState.RUNNING:
            self._invoke(event.timestamp)
        if event.state not in FINAL_STATES or self._invocation is None:
            return
        self._invocation.set({c.STATE: event.state.value, c.ITERATIONS: self._iterations})
        error = event.because or event.state.value if event.state in FAILED_STATES else ""
        self._invocation.end(event.timestamp, error)
        self._invocation = None

    def _add_chat(self, event: Event, completion: Completion, service: str) -> None:
        """Add the span of a model's call, which has ended with the event."""
        end = event.timestamp
        start = end - timedelta(seconds=max(0.0, completion.latency))
        if self._busy_until is not None:
            start = min(end, max(start, self._busy_until))
        is_agent = service == life.AGENT
        parent = self._invoke(start) if is_agent else self._invocation or self._parent()
        attributes = chat_attributes(completion, service, self._conversation)
        if self._content is not None:
            attributes[c.OUTPUT_MESSAGES] = self._content.reply(completion)
            if is_agent and self._new_messages:
                attributes[c.INPUT_MESSAGES] = self._content.messages(self._new_messages)
        span = parent.start_child(f"{c.CHAT} {completion.model}", start, attributes, "client")
        self._add_retries(span, service)
        span.end(end)
        if is_agent:
            self._new_messages.clear()
            self._busy_until = end

    def _add_retries(self, span: RunSpan, service: str) -> None:
        """Add the failed attempts of the call to its span."""
        for retry in self._retries:
            if retry.service == service:
                details = {"resolver.attempt": retry.attempt, "resolver.wait": retry.wait}
                span.add_event("resolver.model.retried", retry.timestamp, details)
        self._retries = [retry for retry in self._retries if retry.service != service]

    def _start_tool(self, action: ActionBase, at: datetime) -> None:
        name = tool_name(action)
        attributes = tool_attributes(action)
        if self._content is not None:
            attributes[c.TOOL_ARGUMENTS] = self._content.arguments(action)
        span = self._invoke(at).start_child(f"{c.EXECUTE_TOOL} {name}", at, attributes)
        self._tools[action.id] = _OpenTool(span, action)

    def _end_tool(self, observation: ObservationBase, action: int) -> None:
        tool = self._open_tool(action, self._busy_until or observation.timestamp)
        if tool is None:
            return
        del self._tools[action]
        if delegate := self._delegates.pop(action, None):
            delegate.close(observation.timestamp)
        if self._content is not None:
            tool.span.set({c.TOOL_RESULT: self._content.result(observation)})
            call = tool.action.tool_call
            message = self._content.tool_message(call.id if call else "", observation.content)
            self._new_messages.append(message)
        if isinstance(observation, o.CmdOutput) and observation.exit_code is not None:
            tool.span.set({c.EXIT_CODE: observation.exit_code})
        tool.span.end(observation.timestamp, error_of(observation))
        self._busy_until = observation.timestamp

    def _open_tool(self, action: int, at: datetime) -> "_OpenTool | None":
        """Return the open tool of an action; started at `at` if the action is from an earlier
        process, None if there is no such action."""
        if action in self._earlier_actions:
            self._start_tool(self._earlier_actions.pop(action), at)
        return self._tools.get(action)

    def _delegate(self, event: life.DelegateEvent) -> "AgentSpans":
        """Return the spans of the delegate that the event comes from."""
        if event.delegate not in self._delegates:
            tool = self._open_tool(event.delegate, event.timestamp)
            parent = tool.span if tool else self._invoke(event.timestamp)
            name = tool.action.agent if tool and isinstance(tool.action, a.Delegate) else ""
            self._delegates[event.delegate] = AgentSpans(
                lambda: parent, name, self._conversation, self._content
            )
        return self._delegates[event.delegate]

    def _add_message(self, message: a.Message) -> None:
        if self._content is not None:
            self._new_messages.append(self._content.user_message(message.content))

    def _add_note(self, event: Event) -> None:
        """Add an event without a duration to the span that it belongs to."""
        span = self._invocation
        if span is None:
            return
        match event:
            case life.Condensation():
                details = {"resolver.forgotten": len(event.forgotten)}
                span.add_event("resolver.condensation", event.timestamp, details)
            case life.Warned():
                span.add_event("resolver.warning", event.timestamp, {"resolver.about": event.about})
            case life.ModelSwitched():
                switch = {c.REQUEST_MODEL: event.to_model, c.SERVICE: event.service}
                span.add_event("resolver.model.switched", event.timestamp, switch)
            case life.ConfirmationAsked() | life.ConfirmationAnswered():
                tool = self._tools.get(event.action)
                held = tool.span if tool else span
                held.add_event(f"resolver.{event.kind}", event.timestamp, {})
