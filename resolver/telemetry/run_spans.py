"""The spans of one run: its root, the phases of the pipeline, and the agent's work below them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from resolver.events.lifecycle import Resumed, RunStarted
from resolver.events.log import Event
from resolver.events.stream import Clock, Subscriber
from resolver.telemetry import conventions as c
from resolver.telemetry.agent_spans import AgentSpans
from resolver.telemetry.content import ContentWriter
from resolver.telemetry.span import Attributes, RunSpan

ROOT_NAME = f"{c.INVOKE_WORKFLOW} resolver"

PHASES: Mapping[str, tuple[str, str]] = {
    "accepted": ("authorize", "start_comment"),
    "announced": ("start_comment", "read_task"),
    "run_task": ("read_task", "clone"),
    "cloned": ("clone", "prepare"),
    "prepared": ("prepare", "open_log"),
    "opened": ("open_log", "execute"),
    "executed": ("execute", "verify"),
    "verification": ("verify", "publish"),
    "replied": ("publish", "conclude"),
}
"""For each value of a stage: the phase that ends when it is reached, and the phase that usually
follows. A phase is renamed if another value than the expected one is reached next. Values that are
not here, such as the one after each step of publishing, end none."""

FIRST_PHASE = "authorize"


class Exporting(Protocol):
    """Starts the root span of a trace, and sends spans until it is closed."""

    def start(self, name: str, at: datetime, attributes: Attributes) -> RunSpan:
        """Start the root span of a new trace."""
        ...

    def close(self) -> None:
        """Send what is left, within a bounded time."""
        ...


class RunSpans:
    """Keeps the spans of one run, from its request to its result.

    export: sends the spans.
    attributes: of the root span.
    content: writes prompts, replies and outputs; None to leave them out.
    now: the clock of the run.
    """

    def __init__(
        self, export: Exporting, attributes: Attributes, content: ContentWriter | None, now: Clock
    ) -> None:
        self._export = export
        self._now = now
        start = now()
        self._root = export.start(ROOT_NAME, start, attributes)
        self._phase: RunSpan | None = None
        self._start_phase(FIRST_PHASE, start)
        self._agent = AgentSpans(self._current, content=content)

    @property
    def traceparent(self) -> str:
        """The ids of the trace and of its root span."""
        return self._root.traceparent

    def subscriber(self, events: Sequence[Event]) -> Subscriber:
        """Return the subscriber for the run's log. A resumed run is linked to its earlier trace.

        events: those that the log has already.
        """
        self._agent.take_over(events)
        if earlier := earlier_traceparent(events):
            self._root.link(earlier)
        return self._agent

    def reach(self, value: str) -> None:
        """End the present phase and start the next one.

        value: name of the value of a stage that was reached.
        """
        if value not in PHASES:
            return
        ended, following = PHASES[value]
        at = self._now()
        if self._phase is not None:
            self._phase.rename(ended)
            self._phase.set({c.PHASE: ended})
            self._phase.end(at)
        self._start_phase(following, at)

    def end(self, attributes: Attributes, error: str = "") -> None:
        """End all spans and send them. error: code of the error that the run ended with."""
        at = self._now()
        self._agent.close(at)
        if self._phase is not None:
            self._phase.end(at, error)
        self._root.set(attributes)
        self._root.end(at, error)
        self._export.close()

    def _start_phase(self, name: str, at: datetime) -> None:
        self._phase = self._root.start_child(name, at, {c.PHASE: name})

    def _current(self) -> RunSpan:
        return self._phase or self._root


def earlier_traceparent(events: Sequence[Event]) -> str:
    """Return the `traceparent` that the newest process of a log has recorded; "" for none."""
    for event in reversed(events):
        if isinstance(event, RunStarted | Resumed):
            return event.traceparent
    return ""
