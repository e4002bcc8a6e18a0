"""Keeps a run's comment up to date while the run is active.

A background thread with a GitHub client of its own writes the comment, so that the run neither
waits for GitHub nor fails with it. After `close` nothing more is written: the pipeline writes the
final comment.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from resolver.errors import ResolverError
from resolver.events.lifecycle import (
    CheckExecuted,
    ConfirmationAnswered,
    StageCompleted,
    VerificationCompleted,
)
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.events.stream import Subscriber
from resolver.github.comments.progress import RunProgress
from resolver.models.check_history import CheckHistory, ObservedCheck
from resolver.models.run import RunState

logger = logging.getLogger("resolver.github.comments.progress_reporter")

MOST_FAILURES = 3
"""Consecutive failed edits after which the reporter stops; the final comment is still written."""

ENDED = frozenset(
    {RunState.FINISHED, RunState.REJECTED, RunState.LIMIT, RunState.STUCK, RunState.STOPPED}
)
"""States in which the agent has ended."""


class ProgressWriter(Protocol):
    """The part of a forge that writes progress comments. It is used by one thread only."""

    def tell_progress(self, progress: RunProgress, told: int | None) -> int | None:
        """Write the progress into the run's comment and return the comment's id.

        `told` is the id of the comment; with None the run's comment is looked up, and created if
        there is none. Returns None if the comment `told` was deleted. Raises ForgeError.
        """
        ...

    def close_dead(self, progress: RunProgress) -> None:
        """Mark the comments of killed runs on the same issue as died. Raises ForgeError."""
        ...


class ProgressReporter:
    """Reports the progress of one run.

    `teller` creates the writer; it is called in the background thread. `begun` is the state when
    the run starts. `interval` is the number of seconds between two edits. `course` takes the events
    of the log in order and returns the check history so far. `redact` removes secrets from a text.
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
        """The id of the comment, None until it is known."""
        return self._told

    def start(self) -> None:
        """Report that the run is active. Returns at once."""
        self._changed.set()
        self._thread.start()

    def show(self, **known: Any) -> None:
        """Update the given fields of `RunProgress`. Returns at once."""
        with self._lock:
            shown = self._progress.model_copy(update=known)
            if shown == self._progress:
                return
            self._progress = shown
        self._changed.set()

    def follow(self, state: State) -> Subscriber:
        """Return a subscriber for the run's log that reports the progress after each event.

        The events that `state` holds already are read at once. `state` must be updated with an
        event before the subscriber gets it.
        """
        for earlier in state.events:
            self._see(earlier)

        def take(event: Event) -> None:
            # A delegate answers in its own log; here the next iteration shows that the wait is
            # over.
            if isinstance(event, ConfirmationAnswered) or state.iterations > self._replies:
                self._held.clear()
            self._replies = state.iterations
            if isinstance(event, StageCompleted):
                self._stage(event.stage)
            if isinstance(event, CheckExecuted):
                self.show(verifying=True)
            if isinstance(event, VerificationCompleted):
                self.show(verdict=event.evidence.verdict)
            if isinstance(event, AgentStateChanged):
                if event.state is RunState.RUNNING:
                    self.show(verifying=False, verdict=None)
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
        """Stop editing the comment while it asks a person for a decision, until that is made."""
        self._held.set()
        with self._writing:
            pass  # wait until an edit in progress has ended

    def close(self) -> None:
        """Stop writing. When this returns, no edit is in progress."""
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
        """Return the check history after one more event, with secrets removed."""
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
        # A command's output is not published while the run is active.
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
            # Changes that arrive during an edit, or within the interval after it, are merged into
            # one edit.
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
        """Write the current progress. Returns False if a person deleted the comment.

        A deleted comment is created again only for the final text.
        """
        with self._writing:
            if self._held.is_set() or self._closed.is_set():
                return True
            with self._lock:
                progress = self._progress
            known = self._told
            self._told = teller.tell_progress(progress, known)
            return self._told is not None
