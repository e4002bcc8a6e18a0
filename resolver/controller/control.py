"""Requests of people to a run in progress: stop, pause, resume, extend, messages, approvals.

They wait in a queue for the controller. A request concerns the whole run. While a delegate is at
work it takes the request, and the logs of its parents record the same as its own.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from resolver.config.templates import render
from resolver.controller.limits import extension_between, extension_events
from resolver.errors import ResolverError, RunStopped
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import Warned
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.events.stream import Clock, EventStream
from resolver.models.approval import PendingApproval
from resolver.models.run import Extension, RunLimits, RunState


@dataclass(frozen=True)
class Stop:
    """Stop the run now.

    by: login of the person who asks, None for the operator of the machine.
    error: what the run ends with; None if `by` and `reason` say everything.
    """

    by: str | None = None
    reason: str | None = None
    error: RunStopped | None = None

    def as_error(self) -> RunStopped:
        """Return what is raised where the run is."""
        if self.error is not None:
            return self.error
        what = _describe_request("stopped", self.by)
        return RunStopped(what + (f": {self.reason}" if self.reason else ""))


@dataclass(frozen=True)
class Pause:
    """Pause the run until Resume."""

    by: str | None = None


@dataclass(frozen=True)
class Resume:
    """Resume the run after a Pause."""

    by: str | None = None


@dataclass(frozen=True)
class Extend:
    """Extend the limits."""

    extension: Extension
    by: str | None = None


@dataclass(frozen=True)
class MessageToAgent:
    """A person's message to the agent, which is the answer if the agent waits for one."""

    message: str
    by: str | None = None


@dataclass(frozen=True)
class Approve:
    """Execute the action that waits, this once.

    at: when it was said, by GitHub's clock; None for somebody who sees the log itself.
    number: number of the action that is meant, None for the one that waits.
    """

    by: str | None = None
    at: datetime | None = None
    number: str | None = None


@dataclass(frozen=True)
class Deny:
    """Don't execute the action that waits. `at` and `number` are as in Approve."""

    by: str | None = None
    at: datetime | None = None
    reason: str | None = None
    number: str | None = None


INTERRUPT_PAUSE_SECONDS = 0.2
"""Seconds between two attempts to end what the run is doing after a Stop."""

Request = Stop | Pause | Resume | Extend | MessageToAgent | Approve | Deny


class Control:
    """A queue of requests, filled from any thread and emptied by the run's thread between steps.

    A Stop is more than a request: it also ends what the run is doing at that moment, and the run
    finds it wherever it asks (`raise_if_stopped`), also after it was taken from the queue.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        # Reentrant, because a signal handler may send while its thread holds the lock.
        self._lock = threading.RLock()
        self._interrupts: list[Callable[[], None]] = []
        self._ends: list[Callable[[], None]] = []
        self._stop: Stop | None = None
        self._has_stop_ended = threading.Event()

    def send(self, request: Request) -> None:
        """Add a request and return immediately."""
        if isinstance(request, Stop):
            with self._lock:
                is_first = self._stop is None
                self._stop = self._stop or request
            if is_first:
                # In a thread, because the sender must not wait and the run's thread may be blocked
                # in the very command that has to end.
                threading.Thread(target=self._end_commands, name="stop", daemon=True).start()
        self._requests.put(request)

    @property
    def is_stopped(self) -> bool:
        """True once a Stop has arrived."""
        return self._stop is not None

    def raise_if_stopped(self) -> None:
        """Raise RunStopped if a Stop has arrived. Other requests stay in the queue."""
        if self._stop is not None:
            raise self._stop.as_error()

    @contextmanager
    def interruptible(
        self, interrupt: Callable[[], None], end: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """Have a Stop, or a time limit, end what runs in the block.

        interrupt: ends it soon and in order. Called in another thread, and again while the run
            does not react: what it ends may be followed by the next of its kind.
        end: ends it at once, whatever is lost. Called in another thread if that did not help.
            Raises RunStopped at the start of the block if it is too late for one.
        """
        ends = [] if end is None else [end]
        with self._lock:
            if ends:
                self.raise_if_stopped()
            self._interrupts.append(interrupt)
            self._ends += ends
        try:
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)
                for ended in ends:
                    self._ends.remove(ended)

    def interrupt(self) -> None:
        """End what the run is doing now. Waits until that was tried."""
        self._call_all(self._interrupts)

    def end(self) -> None:
        """End what the run uses, at once. Waits until that was tried."""
        self._has_stop_ended.set()
        self._call_all(self._ends)

    def close(self) -> None:
        """Stop ending things, because the run has ended."""
        self._has_stop_ended.set()

    def _call_all(self, functions: list[Callable[[], None]]) -> None:
        """Call the functions side by side: several sandboxes may each take a second to end."""
        with self._lock:
            threads = [
                threading.Thread(target=_attempt, args=(function,), name="interrupt", daemon=True)
                for function in functions
            ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _end_commands(self) -> None:
        """End the running command, and any that follows, until the controller takes the Stop.

        One attempt is not enough: the Stop may arrive while the model is queried, and the command
        that the model then asks for could take an hour.
        """
        while not self._has_stop_ended.wait(INTERRUPT_PAUSE_SECONDS):
            self.interrupt()

    @property
    def is_empty(self) -> bool:
        """True if no request waits."""
        return self._requests.empty()

    def take(self, seconds: float = 0.0) -> Request | None:
        """Return the oldest waiting request, or the next one, None if none arrives in time."""
        try:
            return self._mark_taken(self._requests.get(seconds > 0, max(0.0, seconds)))
        except queue.Empty:
            return None

    def _mark_taken(self, request: Request) -> Request:
        if isinstance(request, Stop):
            self._has_stop_ended.set()
        return request


def _attempt(function: Callable[[], None]) -> None:
    """Call the function. It fails if the sandbox is closed or lost, so that nothing runs there."""
    with suppress(ResolverError):
        function()


MAX_PAUSE_SECONDS = 3600.0
"""Default maximum duration of a pause, in seconds."""


@dataclass(frozen=True)
class Level:
    """The log of the run, or of one delegate in it."""

    stream: EventStream
    state: State

    def enter(self, state: RunState, reason: str | None = None) -> None:
        """Record a new state of the run in the log."""
        self.stream.add(AgentStateChanged(state=state, reason=reason))


@dataclass(frozen=True)
class ControlRequestHandler:
    """Takes requests from `control` and carries them out.

    levels: the log of the run, then those of the active delegates, outermost first.
    max_limits: the highest totals to which a request may extend the limits; None means no maximum.
    max_pause: maximum duration of a pause, in seconds.
    """

    control: Control
    levels: tuple[Level, ...]
    now: Clock
    max_limits: RunLimits | None = None
    max_pause: float = MAX_PAUSE_SECONDS

    def for_delegate(self, level: Level) -> "ControlRequestHandler":
        """Return the same for a delegate, with its log added."""
        return replace(self, levels=(*self.levels, level))

    def handle_all(self) -> None:
        """Carry out all waiting requests. Raises RunStopped if the run is to end."""
        while (request := self.control.take()) is not None:
            self._handle(request)

    def answer(self) -> str | None:
        """Return the first waiting message of a person, None if there is none.

        Requests before it are carried out. Raises RunStopped if the run is to end.
        """
        while (request := self.control.take()) is not None:
            if isinstance(request, MessageToAgent):
                return request.message
            self._handle(request)
        return None

    def _handle(self, request: Request) -> None:
        match request:
            case Stop():
                raise request.as_error()
            case Pause(by=by):
                self._pause(by)
            case Extend():
                self._extend(request)
            case MessageToAgent(message=message):
                for level in self.levels:
                    level.stream.add(Message(content=message, source=Source.USER))
            case Resume():
                pass  # the run is not paused
            case Approve() | Deny():
                self._warn_unexpected(request)

    def await_confirmation(self, reason: str) -> None:
        """Record in all logs that the run waits for a person's approval."""
        for level in self.levels:
            if level.state.run_state is not RunState.AWAITING_CONFIRMATION:
                level.enter(RunState.AWAITING_CONFIRMATION, reason)

    def end_confirmation(self) -> None:
        """Record in all logs that the run no longer waits for approval."""
        for level in self.levels:
            if level.state.run_state is RunState.AWAITING_CONFIRMATION:
                level.enter(RunState.RUNNING)

    def decision(
        self, approval: PendingApproval, shown_at: datetime, seconds: float
    ) -> Approve | Deny | None:
        """Return a person's decision about the action shown at `shown_at`, None if there is none.

        seconds: how long to wait; with 0, only requests that are already in the queue count.

        A message without a decision counts as a denial, with the message as the reason. Raises
        RunStopped if the run is to end.
        """
        deadline = self.now() + timedelta(seconds=seconds)
        while True:
            remaining_seconds = (deadline - self.now()).total_seconds() if seconds else 0.0
            request = self.control.take(remaining_seconds)
            match request:
                case None:
                    return None
                case Approve() | Deny() if _is_about(request, approval, shown_at):
                    return request
                case Approve() | Deny():
                    self._warn_unexpected(request)
                case MessageToAgent(message=message, by=by):
                    return Deny(by=by, reason=message)
                case Stop() | Extend():
                    self._handle(request)
                case Pause() | Resume():
                    pass  # the run is idle anyway

    def _warn_unexpected(self, request: Approve | Deny) -> None:
        """Warn about a decision on nothing, or on an action that its author can't have seen."""
        is_approval = isinstance(request, Approve)
        message = render(
            "run/nothing_to_approve.md.j2", approves=is_approval, by=request.by
        ).strip()
        self.levels[0].stream.add(Warned(about="confirmation", message=message))

    def _pause(self, by: str | None) -> None:
        """Pause until a request other than Pause arrives, then carry it out.

        Raises RunStopped if the request is a Stop, or if the pause exceeds `max_pause`.
        """
        earlier_states = [level.state.run_state for level in self.levels]
        for level in self.levels:
            level.enter(RunState.PAUSED, _describe_request("paused", by))
        deadline = self.now() + timedelta(seconds=self.max_pause)
        request: Request | None = Pause()
        while isinstance(request, Pause):
            request = self.control.take((deadline - self.now()).total_seconds())
        if request is None:
            raise RunStopped(render("run/pause_over.md.j2", seconds=self.max_pause).strip())
        if isinstance(request, Stop):
            self._handle(request)
        for level, state in zip(self.levels, earlier_states, strict=True):
            level.enter(state)
        self._handle(request)

    def _extend(self, request: Extend) -> None:
        """Extend the limits of the run, and those of active delegates by what it really got."""
        extension, max_limits = request.extension, self.max_limits
        for level in self.levels:
            earlier_limits = level.state.limits
            for event in extension_events(earlier_limits, extension, max_limits, request.by):
                level.stream.add(event)
            extension, max_limits = extension_between(earlier_limits, level.state.limits), None


def _is_about(decision: Approve | Deny, approval: PendingApproval, shown_at: datetime) -> bool:
    """Return True if the decision's author can have seen the action and refers to no other."""
    is_later = decision.at is None or decision.at > shown_at
    return is_later and decision.number in {None, approval.number}


def _describe_request(action: str, by: str | None) -> str:
    return f"{action} by {by}" if by else f"{action} on request"
