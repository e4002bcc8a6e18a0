"""Telling: keeps the run's one comment up to date while the run is at work.

A thread with a client of its own writes it, so that the run neither waits for the forge nor ends
by its failures. After `close` nothing is written any more: the last word is the pipeline's.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from resolver.errors import ResolverError
from resolver.events.lifecycle import ConfirmationAnswered, StageCompleted
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.events.stream import Subscriber
from resolver.github.comments.progress import RunProgress
from resolver.models.check_history import CheckHistory, ObservedCheck
from resolver.models.run import RunState

logger = logging.getLogger("resolver.github.comments.progress_reporter")

MOST_FAILURES = 3
"""Edits that fail in a row, after which no other is tried: the last word still is."""

ENDED = frozenset(
    {RunState.FINISHED, RunState.REJECTED, RunState.LIMIT, RunState.STUCK, RunState.STOPPED}
)
"""States in which the agent's work is over."""


class ProgressWriter(Protocol):
    """A forge, as far as it tells of a run at work. Used by one thread."""

    def tell_progress(self, progress: RunProgress, told: int | None) -> int | None:
        """Write it into comment `told`, or into the run's own, which is made where there is none.
        The comment's id; None when somebody has deleted it. Raises ForgeError."""
        ...

    def close_dead(self, progress: RunProgress) -> None:
        """Say of the runs that have died on the same thread that they have. Raises ForgeError."""
        ...


class ProgressReporter:
    """One run's. `begun`: what is known when it starts. interval: seconds between two edits.

    teller: makes the client, in the thread. course: takes in the log's events, one after another;
    what they show so far. redact: takes the secrets out of a text.
    """

    def __init__(
        self,
        teller: Callable[[], ProgressWriter],
        begun: RunProgress,
        interval: float,
        course: Callable[[Event], CheckHistory],
        redact: Callable[[str], str],
    ) -> None:
        self._teller = teller
        self._progress = begun
        self._interval = interval
        self._course = course
        self._redact = redact
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._held = threading.Event()
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._told: int | None = None
        self._shown = self._clean = CheckHistory()
        self._replies = 0
        self._thread = threading.Thread(target=self._write_all, name="telling", daemon=True)

    @property
    def told(self) -> int | None:
        """Id of the comment, once it is known."""
        return self._told

    def start(self) -> None:
        """Say that the run is at work. Returns at once."""
        self._changed.set()
        self._thread.start()

    def show(self, **known: Any) -> None:
        """Tell what is known now; fields of Progress. Returns at once."""
        with self._lock:
            shown = self._progress.model_copy(update=known)
            if shown == self._progress:
                return
            self._progress = shown
        self._changed.set()

    def follow(self, state: State) -> Subscriber:
        """A subscriber of the run's log. state: folded before it is told."""
        for earlier in state.events:
            self._see(earlier)

        def take(event: Event) -> None:
            # a delegate's answer is in its own log, and its next reply counts here
            if isinstance(event, ConfirmationAnswered) or state.iterations > self._replies:
                self._held.clear()
            self._replies = state.iterations
            if isinstance(event, StageCompleted):
                self._stage(event.stage)
            if isinstance(event, AgentStateChanged):
                paused = event.state is RunState.PAUSED
                self.show(worked=event.state in ENDED, paused=paused)
            self.show(
                iterations=state.iterations,
                max_iterations=state.limits.max_iterations,
                cost=state.cost,
                plan=tuple(
                    i.model_copy(update={"title": self._redact(i.title)}) for i in state.plan
                ),
                course=self._see(event),
            )

        return take

    def hold(self) -> None:
        """Leave the comment to what waits for a person in it, until that is decided."""
        self._held.set()
        with self._writing:
            pass  # an edit under way is over

    def close(self) -> None:
        """Write no more. When it returns no edit is under way."""
        self._closed.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _stage(self, stage: str) -> None:
        match stage:
            case "sandbox":
                self.show(sandbox=True)
            case "change":
                self.show(worked=True)
            case "published" | "reviewed":
                self.show(worked=True, published=True)
            case _:
                pass

    def _see(self, event: Event) -> CheckHistory:
        """What the log shows with one more event, without secrets."""
        course = self._course(event)
        if course is not self._shown:
            self._shown = course
            self._clean = course.model_copy(
                update={
                    "reproduced": self._redacted(course.reproduced),
                    "checks": tuple(filter(None, map(self._redacted, course.checks))),
                }
            )
        return self._clean

    def _redacted(self, check: ObservedCheck | None) -> ObservedCheck | None:
        if check is None:
            return None
        # what it wrote is not told while the run is at work
        shown = {"command": self._redact(check.command), "output": ""}
        return check.model_copy(update=shown)

    def _write_all(self) -> None:
        try:
            teller = self._teller()
        except ResolverError as error:
            logger.warning("the run's progress is not told: %s", error.what)
            return
        failures, looked = 0, False
        while failures < MOST_FAILURES:
            self._changed.wait()
            if self._closed.is_set():
                return
            self._changed.clear()
            try:
                if not self._write(teller):
                    return
                if not looked:
                    looked = True
                    teller.close_dead(self._progress)
                failures = 0
            except ResolverError as error:
                failures += 1
                self._changed.set()
                logger.warning("the run's progress could not be told: %s", error.what)
            if self._closed.wait(self._interval):
                return

    def _write(self, teller: ProgressWriter) -> bool:
        """False when a person has deleted the comment: it is made anew only to tell the end."""
        with self._writing:
            if self._held.is_set() or self._closed.is_set():
                return True
            with self._lock:
                progress = self._progress
            known = self._told
            self._told = teller.tell_progress(progress, known)
            return self._told is not None
